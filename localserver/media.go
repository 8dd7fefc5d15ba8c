package localserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

const (
	// mediaPath is where objects are written and read; the sealed grant
	// follows.
	mediaPath = "/v1/media/objects/"
	// mediaScheme is what every media location begins with.
	mediaScheme = "media://"
	// resultPrefix is where the service keeps what streams leave behind.
	resultPrefix = "live/"
	// mediaAddressTTL is how long a signed address opens its object. What has
	// begun by then may finish.
	mediaAddressTTL = time.Hour
	// maxTransfers bounds the uploads and downloads of one account that a node
	// carries at once: each holds about a megabyte.
	maxTransfers = 64
	// sweepEvery is how often what broken-off uploads left is removed.
	sweepEvery = 5 * time.Minute
)

// DefaultMaxMedia is the largest media object when Options name no size, in
// bytes.
const DefaultMaxMedia = 1 << 30

// mediaInput is POST /v1/media/input: an address that takes the bytes by PUT.
func (s *Server) mediaInput(w http.ResponseWriter, r *http.Request) {
	name, ok := s.location(w, r)
	if !ok {
		return
	}
	if strings.HasPrefix(name, resultPrefix) {
		answer(w, http.StatusBadRequest, protocol.Invalid("url", "must not begin with media://live/: what is there is the service's"))
		return
	}
	s.grantMedia(w, r, http.MethodPut, name)
}

// mediaOutput is POST /v1/media/output: an address that gives the bytes by
// GET, if there are any.
func (s *Server) mediaOutput(w http.ResponseWriter, r *http.Request) {
	name, ok := s.location(w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	account := caller(r.Context()).account
	var err error
	if id, _, result := resultName(name); result {
		_, err = s.finished(ctx, account, id)
	} else {
		_, err = s.media.StatMedia(ctx, account, name, s.now())
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		refuse(w, r, http.StatusNotFound, "Nothing is stored at this location")
	case err != nil:
		s.failed(w, r, http.StatusServiceUnavailable, "The location could not be looked up; try again", err)
	default:
		s.grantMedia(w, r, http.MethodGet, name)
	}
}

// location reads the body of the media operations; when it cannot, it has
// answered. The name is the part behind media:// and nothing but a name.
func (s *Server) location(w http.ResponseWriter, r *http.Request) (name string, ok bool) {
	body, ok := readBody(w, r)
	if !ok {
		return "", false
	}
	at, invalid := protocol.ParseMediaLocation(body)
	if invalid != nil {
		answer(w, http.StatusBadRequest, invalid)
		return "", false
	}
	return strings.TrimPrefix(at.URL, mediaScheme), true
}

// grantMedia answers with a signed address.
func (s *Server) grantMedia(w http.ResponseWriter, r *http.Request, method, name string) {
	sealed := s.signer.seal(grant{method: method, account: caller(r.Context()).account, name: name,
		expires: s.now().Add(mediaAddressTTL)})
	answer(w, http.StatusCreated, protocol.MediaLocation{URL: s.httpURL(r, mediaPath+sealed)})
}

// httpURL is the address of a path: under the public address, or under the
// name by which the client has just reached the server.
func (s *Server) httpURL(r *http.Request, path string) string {
	if s.public != nil {
		return s.public.JoinPath(path).String()
	}
	u := url.URL{Scheme: "https", Host: r.Host, Path: path}
	if s.tls == nil {
		u.Scheme = "http"
	}
	if u.Host == "" { // HTTP/1.0 has no Host
		u.Host = s.Addr().String()
	}
	return u.String()
}

// opened checks the address of a transfer and takes a place for it; when it
// cannot, it has answered.
func (s *Server) opened(w http.ResponseWriter, r *http.Request) (g grant, leave func(), ok bool) {
	g, ok = s.signer.open(r.PathValue("sealed"), r.Method, s.now())
	if !ok {
		refuse(w, r, http.StatusForbidden, "This address opens nothing, or not any more")
		return g, nil, false
	}
	if !s.transfers.enter(g.account) {
		refuse(w, r, http.StatusTooManyRequests, "Too many transfers at once; try again later")
		return g, nil, false
	}
	return g, func() { s.transfers.leave(g.account) }, true
}

// sweep removes what broken-off uploads and replaced objects left, until the
// server ends.
func (s *Server) sweep() {
	defer s.chores.Done()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(s.life, time.Minute)
		n, err := s.media.SweepMedia(ctx, s.now())
		cancel()
		switch {
		case s.life.Err() != nil:
			return
		case err != nil:
			s.log.Warn("media could not be swept", "error", err)
		case n > 0:
			s.log.Info("media swept", "objects", n)
		}
		select {
		case <-s.life.Done():
			return
		case <-tick.C:
		}
	}
}
