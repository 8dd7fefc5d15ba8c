package jobs

import (
	"sync"
	"time"

	"hubbub/localserver/store"
)

const (
	// lookAhead is how many deliveries are searched for a job of another account,
	// and lookInterval how often at most.
	lookAhead    = 2000
	lookInterval = 2 * time.Second
	// maxServed bounds the accounts that are remembered.
	maxServed = 1000
)

// accountOrder is the order in which the accounts were last served on this node.
type accountOrder struct {
	mu     sync.Mutex
	served map[string]int // account: number of its newest delivery that was begun
	begun  int            // deliveries so far
	looked time.Time      // when the queue was last searched
}

// note notes that a delivery of an account begins.
func (o *accountOrder) note(account string) {
	if o.served == nil || len(o.served) >= maxServed {
		o.served = map[string]int{}
	}
	o.begun++
	o.served[account] = o.begun
}

// fair exchanges a delivery for one of an account that has waited longer, if there is
// one among those that follow. So an account with many jobs, or with webhooks
// that do not respond, does not delay the others by all of them.
func (r *Runner) fair(w *work, d *store.Delivery) *store.Delivery {
	order := &w.order
	order.mu.Lock()
	defer order.mu.Unlock()
	defer func() { order.note(d.Job.Account) }()
	if now := time.Now(); order.served[d.Job.Account] > 0 && now.Sub(order.looked) >= lookInterval {
		order.looked = now
		list, err := r.Store.More(w.queue, lookAhead)
		if err != nil {
			r.Logger.Warn("the queue could not be searched", "queue", string(w.queue), "error", err)
		}
		list = append([]*store.Delivery{d}, list...)
		for _, other := range list {
			if order.served[other.Job.Account] < order.served[d.Job.Account] {
				d = other
			}
		}
		for _, other := range list {
			if other != d {
				r.giveBack(other, 0)
			}
		}
	}
	return d
}
