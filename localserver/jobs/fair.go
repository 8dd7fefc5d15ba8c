package jobs

import (
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

// begin notes that a delivery of an account begins.
func (w *work) begin(account string) {
	if w.served == nil || len(w.served) >= maxServed {
		w.served = map[string]int{}
	}
	w.begun++
	w.served[account] = w.begun
}

// fair exchanges a delivery for one of an account that has waited longer, if there is
// one among those that follow. So an account with many jobs, or with webhooks
// that do not respond, does not delay the others by all of them.
func (r *Runner) fair(w *work, d *store.Delivery) *store.Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.begin(d.Job.Account) }()
	if now := time.Now(); w.served[d.Job.Account] > 0 && now.Sub(w.looked) >= lookInterval {
		w.looked = now
		list, err := r.Store.More(w.queue, lookAhead)
		if err != nil {
			r.Logger.Warn("the queue could not be searched", "queue", string(w.queue), "error", err)
		}
		list = append([]*store.Delivery{d}, list...)
		for _, other := range list {
			if w.served[other.Job.Account] < w.served[d.Job.Account] {
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
