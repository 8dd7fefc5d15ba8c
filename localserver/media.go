package localserver

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"time"

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
		return notFound(err, "The location could not be looked up; try again")
	}
	return s.grantMedia(w, r, http.MethodGet, name)
}

// notFound is what a request fails with because a call of the store has not found an
// object; message is for other errors.
func notFound(err error, message string) error {
	if errors.Is(err, store.ErrNotFound) {
		return refused(http.StatusNotFound, "Nothing is stored at this location")
	}
	return unavailable(message, err)
}

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
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails: it ends the program instead
	signed := s.signer.sign(grant{method: method, account: caller(r.Context()).Account, name: name,
		expires: s.now().Add(mediaAddressTTL), nonce: binary.BigEndian.Uint64(nonce[:])})
	return respond(w, http.StatusCreated, protocol.MediaLocation{URL: s.httpURL(r, mediaPath+signed)})
}

// httpURL is the address of a path: under the public address, or under a
// known host of the request.
func (s *Server) httpURL(r *http.Request, path string) string {
	if s.public != nil {
		return s.public.JoinPath(path).String()
	}
	u := url.URL{Scheme: s.scheme(), Host: s.requestHost(r), Path: path}
	return u.String()
}

// beginTransfer verifies the address of a transfer and counts it against its
// account's quota.
func (s *Server) beginTransfer(r *http.Request) (g grant, release func(), err error) {
	g, ok := s.signer.verify(r.PathValue("sealed"), r.Method, s.now())
	if !ok {
		return g, nil, refused(http.StatusForbidden, "This address is not valid, or has expired")
	}
	infoOf(r.Context()).who.Account = g.account
	if s.transfers.Acquire(g.account) != nil {
		return g, nil, refused(http.StatusTooManyRequests, "Too many transfers at once; try again later")
	}
	return g, func() { s.transfers.Release(g.account) }, nil
}

// sweepMedia removes the remains of abandoned uploads and replaced objects.
func (s *Server) sweepMedia(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	n, err := s.store.SweepMedia(ctx, s.now())
	if n > 0 {
		s.log.Info("expired media removed", "objects", n)
	}
	return err
}

// grant is what a signed address allows: one method on one object until a
// time.
//
// The nonce makes each upload address a different one: a complete upload uses
// up its address.
type grant struct {
	method  string // GET or PUT
	account string
	name    string // of the object, within the account
	expires time.Time
	nonce   uint64
}

// signer signs and verifies grants. All nodes of a cluster share its key, so
// that an address is valid on each of them.
type signer struct{ key []byte }

// A signed grant is an opaque text: a MAC, then the grant. It contains no
// secret, but whoever has it may do what it grants.
const (
	grantVersion = 2
	// grantHead is version, method, expiry in seconds, nonce, length of the
	// account.
	grantHead = 1 + 1 + 8 + 8 + 2
	// maxGrant bounds the text of a grant, in bytes.
	maxGrant = 1024
)

// grantEncoding has one text for each value, so that a changed text is another
// value.
var grantEncoding = base64.RawURLEncoding.Strict()

func (s signer) sign(g grant) string {
	payload := make([]byte, 0, grantHead+len(g.account)+len(g.name))
	payload = append(payload, grantVersion, g.method[0])
	payload = binary.BigEndian.AppendUint64(payload, uint64(g.expires.Unix()))
	payload = binary.BigEndian.AppendUint64(payload, g.nonce)
	payload = binary.BigEndian.AppendUint16(payload, uint16(len(g.account)))
	payload = append(append(payload, g.account...), g.name...)
	return grantEncoding.EncodeToString(append(s.mac(payload), payload...))
}

// verify returns what a text grants to a method at the time now. ok is false
// for anything but a text of sign for that method that has not expired.
func (s signer) verify(text, method string, now time.Time) (g grant, ok bool) {
	if len(text) > maxGrant {
		return grant{}, false
	}
	raw, err := grantEncoding.DecodeString(text)
	if err != nil || len(raw) < sha256.Size+grantHead {
		return grant{}, false
	}
	mac, payload := raw[:sha256.Size], raw[sha256.Size:]
	if !hmac.Equal(mac, s.mac(payload)) { // in constant time
		return grant{}, false
	}
	// From here on the text is known to be one of sign.
	account := int(binary.BigEndian.Uint16(payload[18:]))
	g = grant{method: http.MethodGet, expires: time.Unix(int64(binary.BigEndian.Uint64(payload[2:])), 0),
		nonce: binary.BigEndian.Uint64(payload[10:])}
	if payload[1] == http.MethodPut[0] {
		g.method = http.MethodPut
	}
	rest := payload[grantHead:]
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if payload[0] != grantVersion || account > len(rest) || g.method != method || !now.Before(g.expires) {
		return grant{}, false
	}
	g.account, g.name = string(rest[:account]), string(rest[account:])
	return g, true
}

// permit names a signed grant in the store.
func permit(signed string) string {
	sum := sha256.Sum256([]byte(signed))
	return hex.EncodeToString(sum[:])
}

func (s signer) mac(payload []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte("hubbub media address\x00"))
	h.Write(payload)
	return h.Sum(nil)
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
	list := protocol.MediaList{Media: []protocol.MediaObject{}, Used: used, Limit: s.options.AccountStorage}
	from := sort.Search(len(objects), func(i int) bool { return objects[i].Name > after })
	for _, o := range objects[from:] {
		if len(list.Media) == maxListed {
			list.Next = list.Media[maxListed-1].URL
			break
		}
		list.Media = append(list.Media, protocol.MediaObject{URL: protocol.MediaScheme + o.Name, Size: o.Size,
			CreatedAt: protocol.FormatTime(o.Written), ExpiresAt: protocol.FormatTime(o.Written.Add(store.MediaTTL))})
	}
	return respond(w, http.StatusOK, list)
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
		return notFound(err, "The object could not be deleted; try again")
	}
	s.log.Info("media deleted", "request", requestID(r.Context()), "account", account)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// queryLocation reads a media location from a query and returns its name.
func queryLocation(query url.Values, field string) (name string, err error) {
	location := protocol.MediaLocation{URL: query.Get(field)}
	invalid := location.Validate()
	if invalid == nil && len(query[field]) != 1 {
		invalid = protocol.Invalid(field, "must be given once")
	}
	if invalid != nil {
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
