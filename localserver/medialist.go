package localserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sort"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

const (
	// DefaultAccountStorage is the value of Options.AccountStorage unless given,
	// in bytes.
	DefaultAccountStorage = 10 << 30
	// maxListed bounds the objects of one answer.
	maxListed = 1000
)

// listMedia is GET /v1/media: the objects of the account, sorted by name, and
// how much of its storage they use.
func (s *Server) listMedia(w http.ResponseWriter, r *http.Request) {
	after, ok := queryLocation(w, r.URL.Query(), "after", false)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	objects, used, err := s.media.ListMedia(ctx, caller(r.Context()).Account, s.now())
	if err != nil {
		s.failed(w, r, http.StatusServiceUnavailable, "The media could not be listed; try again", err)
		return
	}
	list := protocol.MediaList{Media: []protocol.MediaObject{}, Used: used, Limit: s.options.AccountStorage}
	from := sort.Search(len(objects), func(i int) bool { return objects[i].Name > after })
	for _, o := range objects[from:] {
		if len(list.Media) == maxListed {
			list.Next = list.Media[maxListed-1].URL
			break
		}
		list.Media = append(list.Media, protocol.MediaObject{URL: mediaScheme + o.Name, Size: o.Size,
			CreatedAt: o.Written.UTC().Format(protocol.TimeFormat), ExpiresAt: o.Written.Add(store.MediaTTL).UTC().Format(protocol.TimeFormat)})
	}
	respond(w, http.StatusOK, list)
}

// deleteMedia is DELETE /v1/media?url=LOCATION.
func (s *Server) deleteMedia(w http.ResponseWriter, r *http.Request) {
	name, ok := queryLocation(w, r.URL.Query(), "url", true)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	account := caller(r.Context()).Account
	err := s.media.DeleteMedia(ctx, account, name, s.now())
	switch {
	case errors.Is(err, store.ErrNotFound):
		refuse(w, r, http.StatusNotFound, "Nothing is stored at this location")
	case err != nil:
		s.failed(w, r, http.StatusServiceUnavailable, "The object could not be deleted; try again", err)
	default:
		s.log.Info("media deleted", "request", requestID(r.Context()), "account", account)
		w.WriteHeader(http.StatusNoContent)
	}
}

// queryLocation reads a media location from a query and returns its name; if ok
// is false it has answered.
func queryLocation(w http.ResponseWriter, query url.Values, field string, required bool) (name string, ok bool) {
	if !required && !query.Has(field) {
		return "", true
	}
	location := protocol.MediaLocation{URL: query.Get(field)}
	invalid := location.Validate()
	if invalid == nil && len(query[field]) != 1 {
		invalid = protocol.Invalid(field, "must be given once")
	}
	if invalid != nil {
		invalid.Errors[0].Field = field
		respond(w, http.StatusBadRequest, invalid)
		return "", false
	}
	return location.URL[len(mediaScheme):], true
}

// overQuota is the message for an upload that its account has no storage for.
func overQuota(q *store.QuotaError) string {
	const mebibyte = 1 << 20
	return fmt.Sprintf("The storage of the account is used up: %.1f of %.1f MiB; delete media with DELETE /v1/media?url=..., or wait until some expires",
		float64(q.Used)/mebibyte, float64(q.Limit)/mebibyte)
}
