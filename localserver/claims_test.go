package localserver

import (
	"context"
	"sync"
	"testing"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol/testkit"
)

// lossyStreams is a store whose responses to some calls of Begin are lost,
// whether the calls are carried out or not.
type lossyStreams struct {
	records
	mu      sync.Mutex
	lost    int  // how many responses will be lost
	carried bool // whether those calls are carried out
}

func (d *lossyStreams) Begin(ctx context.Context, id, token string, by store.Claim, at time.Time) error {
	d.mu.Lock()
	lost := d.lost > 0
	d.lost--
	d.mu.Unlock()
	if !lost {
		return d.records.Begin(ctx, id, token, by, at)
	}
	if d.carried {
		if err := d.records.Begin(ctx, id, token, by, at); err != nil {
			return err
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	return d.records.Begin(gone, id, token, by, at)
}

// A handshake that fails with 503 does not cost the token, whether the store
// has used it up or not; and the token still works once.
func TestUnknownOutcomeKeepsTheToken(t *testing.T) {
	t.Parallel()
	for name, carried := range map[string]bool{"carried out": true, "not carried out": false} {
		t.Run(name, func(t *testing.T) {
			h := serve(t)
			d := &lossyStreams{records: h.store, lost: 2, carried: carried}
			h.Server.records = d
			again, later := h.create(), h.create()
			// One client retries before the claim is withdrawn, with a wrong token
			// in between, which changes nothing.
			h.refused(again.URL, 503)
			h.refused(again.URL[:len(again.URL)-1], 401)
			h.refused(later.URL, 503)
			conn, _, err := h.dial.Dial(again.URL, nil)
			testkit.NoError(t, err)
			defer conn.Close()
			h.refused(again.URL, 401)
			// The other one retries afterwards.
			h.becomes(later.ID, "created")
			testkit.Eventually(t, "no claim of unknown outcome", func() bool {
				_, locked := h.tokenLocks.locks.Load(later.ID)
				return !locked
			})
			testkit.Equal(t, h.status(later.ID).Status, "created", "status")
			_ = h.openNow(later).Close()
			h.refused(later.URL, 401)
		})
	}
}
