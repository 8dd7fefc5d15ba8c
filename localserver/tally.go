package localserver

import "sync"

// tally counts what is open for each account and bounds it.
type tally struct {
	limit int

	mu   sync.Mutex
	open map[string]int // accounts with nothing open are not in it
}

func newTally(limit int) *tally { return &tally{limit: limit, open: map[string]int{}} }

// room tells whether the account may have one more.
func (t *tally) room(account string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[account] < t.limit
}

// enter takes one place of the account, if there is one; leave gives it back.
func (t *tally) enter(account string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[account] >= t.limit {
		return false
	}
	t.open[account]++
	return true
}

func (t *tally) leave(account string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[account]--; t.open[account] <= 0 {
		delete(t.open, account)
	}
}
