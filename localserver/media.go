package localserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

const (
	// mediaPath is where objects are written and read; the signed grant
	// follows.
	mediaPath = "/v1/media/objects/"
	// resultPrefix is where the service stores the results of streams.
	resultPrefix = "live/"
	// mediaAddressTTL is how long a signed address is valid. A transfer that has
	// begun by then may finish.
	mediaAddressTTL = time.Hour
	// maxTransfers bounds the concurrent uploads and downloads of one account on
	// a node: each holds a chunk of 256 KiB in memory.
	maxTransfers = 64
	// sweepInterval is how often the remains of abandoned uploads and replaced
	// objects are removed, and sweepTimeout bounds one removal.
	sweepInterval = 5 * time.Minute
	sweepTimeout  = time.Minute
)

// DefaultMaxMedia is the value of Options.MaxMedia unless given, in bytes.
const DefaultMaxMedia = 1 << 30

// mediaInput is POST /v1/media/input: an address for the upload by PUT.
func (s *Server) mediaInput(w http.ResponseWriter, r *http.Request) error {
	name, err := location(w, r)
	if err != nil {
		return err
	}
	if strings.HasPrefix(name, resultPrefix) {
		return protocol.Invalid("url", "must not begin with media://live/: what is there is the service's")
	}
	return s.grantMedia(w, r, http.MethodPut, name)
}

// mediaOutput is POST /v1/media/output: an address for the download by GET, if
// the object exists.
func (s *Server) mediaOutput(w http.ResponseWriter, r *http.Request) error {
	name, err := location(w, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	account := caller(r.Context()).Account
	if id, _, ok := parseResultName(name); ok {
		_, err = s.finishedStream(ctx, account, id)
	} else {
		_, err = s.store.StatMedia(ctx, account, name, s.now())
	}
	if err != nil {
		return storeError(err, nothingStored, "The location could not be looked up; try again")
	}
	return s.grantMedia(w, r, http.MethodGet, name)
}

// nothingStored is the message for a location without an object.
const nothingStored = "Nothing is stored at this location"

// location reads the body of the media operations. The name is the part after media://, and
// opaque.
func location(w http.ResponseWriter, r *http.Request) (name string, err error) {
	body, err := readBody(w, r, maxBody)
	if err != nil {
		return "", err
	}
	location, invalid := protocol.ParseMediaLocation(body)
	if invalid != nil {
		return "", invalid
	}
	return strings.TrimPrefix(location.URL, protocol.MediaScheme), nil
}

// grantMedia responds with a signed address.
func (s *Server) grantMedia(w http.ResponseWriter, r *http.Request, method, name string) error {
	signed := s.signer.sign(method, caller(r.Context()).Account, name, s.now().Add(mediaAddressTTL))
	return respond(w, http.StatusCreated, protocol.MediaLocation{URL: s.address(r, mediaPath+signed).String()})
}

// address is the address of a path: under the public address, or under a known host of
// the request.
func (s *Server) address(r *http.Request, path string) *url.URL {
	if s.public != nil {
		return s.public.JoinPath(path)
	}
	return &url.URL{Scheme: s.scheme(), Host: s.requestHost(r), Path: path}
}

// beginTransfer verifies the address of a transfer and counts it against its
// account's quota.
func (s *Server) beginTransfer(r *http.Request) (g grant, release func(), err error) {
	g, ok := s.signer.verify(r.PathValue("sealed"), r.Method, s.now())
	if !ok {
		return g, nil, refused(http.StatusForbidden, "This address is not valid, or has expired")
	}
	infoOf(r.Context()).who.Account = g.Subject
	if s.transfers.Acquire(g.Subject) != nil {
		return g, nil, refused(http.StatusTooManyRequests, "Too many transfers at once; try again later")
	}
	return g, func() { s.transfers.Release(g.Subject) }, nil
}

// sweepMedia removes the remains of abandoned uploads and replaced objects, and entries of the
// future, which keep others from expiring.
func (s *Server) sweepMedia(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	n, err := s.store.SweepMedia(ctx, s.now())
	if n > 0 {
		s.log.Info("expired media removed", "objects", n)
	}
	return errors.Join(err, s.store.SweepFuture(ctx, s.now()))
}

// grant is what a signed address allows: one method on one object of the account Subject
// until a time. Its ID makes each address a different one: a complete upload uses up its
// address.
type grant struct {
	jwt.RegisteredClaims
	Method string `json:"method"` // GET or PUT
	Name   string `json:"name"`   // of the object, within the account
}

// signer signs and verifies grants, as JSON Web Tokens. All nodes of a cluster share its
// key, so that an address is valid on each of them. A signed grant contains no secret,
// but whoever has it may do what it grants.
type signer struct{ key []byte }

func (s signer) sign(method, account, name string, expires time.Time) string {
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, grant{
		jwt.RegisteredClaims{Subject: account, ExpiresAt: jwt.NewNumericDate(expires), ID: rand.Text()}, method, name,
	}).SignedString(s.key)
	if err != nil { // texts and a time always marshal
		panic(err)
	}
	return text
}

// verify returns what a text grants to a method at the time now. ok is false
// for anything but a text of sign for that method that has not expired.
func (s signer) verify(text, method string, now time.Time) (g grant, ok bool) {
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(),
		jwt.WithStrictDecoding(), jwt.WithTimeFunc(func() time.Time { return now }))
	_, err := parser.ParseWithClaims(text, &g, func(*jwt.Token) (any, error) { return s.key, nil })
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return g, err == nil && g.Method == method
}

const (
	// DefaultAccountStorage is the value of Options.AccountStorage unless given,
	// in bytes.
	DefaultAccountStorage = 10 << 30
	// maxListed bounds the objects of one response.
	maxListed = 1000
)

// listMedia is GET /v1/media: the objects of the account, sorted by name, and
// how much of its storage they use.
func (s *Server) listMedia(w http.ResponseWriter, r *http.Request) error {
	after := ""
	if query := r.URL.Query(); query.Has("after") {
		var err error
		if after, err = queryLocation(query, "after"); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	objects, used, err := s.store.ListMedia(ctx, caller(r.Context()).Account, s.now())
	if err != nil {
		return unavailable("The media could not be listed; try again", err)
	}
	list := mediaPage(objects, after)
	list.Used, list.Limit = used, s.options.AccountStorage
	return respond(w, http.StatusOK, list)
}

// mediaPage lists the objects after a name. They are sorted by name.
func mediaPage(objects []store.MediaInfo, after string) protocol.MediaList {
	list := protocol.MediaList{Media: []protocol.MediaObject{}}
	from := sort.Search(len(objects), func(i int) bool { return objects[i].Name > after })
	for _, o := range objects[from:] {
		if len(list.Media) == maxListed {
			list.Next = list.Media[maxListed-1].URL
			break
		}
		list.Media = append(list.Media, protocol.MediaObject{URL: protocol.MediaScheme + o.Name, Size: o.Size,
			CreatedAt: protocol.FormatTime(o.Written), ExpiresAt: protocol.FormatTime(o.Written.Add(store.MediaTTL))})
	}
	return list
}

// deleteMedia is DELETE /v1/media?url=LOCATION.
func (s *Server) deleteMedia(w http.ResponseWriter, r *http.Request) error {
	name, err := queryLocation(r.URL.Query(), "url")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	account := caller(r.Context()).Account
	if err := s.store.DeleteMedia(ctx, account, name, s.now()); err != nil {
		return storeError(err, nothingStored, "The object could not be deleted; try again")
	}
	s.log.Info("media deleted", "request", requestID(r.Context()), "account", account)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// queryLocation reads a media location from a query and returns its name.
func queryLocation(query url.Values, field string) (name string, err error) {
	location := protocol.MediaLocation{URL: query.Get(field)}
	if invalid := location.Validate(); invalid != nil {
		invalid.Errors[0].Field = field
		return "", invalid
	}
	return strings.TrimPrefix(location.URL, protocol.MediaScheme), nil
}

// overQuota is the message for an upload that its account has no storage for.
func overQuota(q *store.QuotaError) string {
	const mebibyte = 1 << 20
	return fmt.Sprintf("The storage of the account is used up: %.1f of %.1f MiB; delete media with DELETE /v1/media?url=..., or wait until some expires",
		float64(q.Used)/mebibyte, float64(q.Limit)/mebibyte)
}
