package apikeys

import "sync"

// Opened are the open streams and watchers of a node, each with the ID of the API
// key that it was opened with. The zero value is ready to use.
type Opened struct {
	mu   sync.Mutex
	keys map[chan struct{}]string // closing the channel ends the stream or watcher
}

// Add notes that a stream or watcher was opened. revoked is closed when its key
// is revoked; remove must be called at its end. A key without an ID cannot be
// revoked.
func (o *Opened) Add(key string) (revoked <-chan struct{}, remove func()) {
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

// End ends everything that was opened with a revoked key.
func (o *Opened) End(revoked func(key string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c, key := range o.keys {
		if revoked(key) {
			close(c)
			delete(o.keys, c)
		}
	}
}
