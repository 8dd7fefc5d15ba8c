package localserver

import (
	"context"
	"sync"

	"hubbub/localserver/apikeys"
)

// openedByKey are the open streams and watchers with the ID of the API key that
// each was opened with. The zero value is ready to use.
type openedByKey struct {
	mu   sync.Mutex
	keys map[chan struct{}]string // closing the channel ends the stream or watcher
}

// add notes that a stream or watcher was opened. revoked is closed when its key
// is revoked; remove must be called at its end. A key without an ID cannot be
// revoked.
func (o *openedByKey) add(key string) (revoked <-chan struct{}, remove func()) {
	if key == "" {
		return nil, func() {}
	}
	c := make(chan struct{})
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.keys == nil {
		o.keys = map[chan struct{}]string{}
	}
	o.keys[c] = key
	return c, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.keys, c)
	}
}

// end ends everything that was opened with a revoked key.
func (o *openedByKey) end(revoked func(key string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c, key := range o.keys {
		if revoked(key) {
			close(c)
			delete(o.keys, c)
		}
	}
}

// refreshKeys makes new, removed and revoked API keys effective, also if some of
// them cannot be read.
func (s *Server) refreshKeys(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, apikeys.RefreshTimeout)
	defer cancel()
	err := s.keys.Refresh(ctx)
	s.opened.end(s.keys.Revoked)
	return err
}
