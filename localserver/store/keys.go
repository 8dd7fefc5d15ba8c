package store

import "context"

// SharedKey is a key that one node has published for all, so that each of them can
// verify API keys that were signed in the data folder of another one; or the record of a
// revoked API key. It is valid until it is withdrawn.
type SharedKey struct {
	Origin string `json:"origin"` // the data folder that it belongs to, or a name for those of no folder
	ID     string `json:"id"`
	Raw    []byte `json:"raw"`
}

func (k SharedKey) name() string { return k.Origin + "." + k.ID }

// PublishKey makes a key known to all nodes.
func (s *Store) PublishKey(ctx context.Context, key SharedKey) error {
	return wrap("publish key", retry(ctx, func(ctx context.Context) error {
		return s.keys.Put(ctx, key.name(), encode(key))
	}))
}

// WithdrawKey removes a key that was published.
func (s *Store) WithdrawKey(ctx context.Context, key SharedKey) error {
	return wrap("withdraw key", retry(ctx, func(ctx context.Context) error {
		return s.keys.Purge(ctx, key.name())
	}))
}

// PublishedKeys returns all keys, and a version that changes whenever one is published
// or withdrawn. If the version is still the one that the caller has seen, it returns no
// keys.
func (s *Store) PublishedKeys(ctx context.Context, seen uint64) (keys []SharedKey, version uint64, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		keys = nil
		info, err := s.keys.stream.Info(ctx)
		if err != nil {
			return err
		}
		// One more than the newest entry, so that no version is 0.
		if version = info.State.LastSeq + 1; version == seen {
			return nil
		}
		return each(ctx, s.keys, ">", func(_ string, key SharedKey) { keys = append(keys, key) })
	})
	return keys, version, wrap("read keys", err)
}
