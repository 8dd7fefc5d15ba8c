package jobs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/capture"
	"hubbub/localserver/outbound"
	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/recovered"
	"hubbub/protocol/words"
)

const (
	// storeTimeout bounds one call of the store.
	storeTimeout = 5 * time.Second
	// retryPause is the pause after a failure of the queue.
	retryPause = time.Second
)

// Store is what a Runner, and Output, need of the store.
type Store interface {
	Job(ctx context.Context, account, id string, now time.Time) (store.Job, uint64, error)
	UpdateJob(ctx context.Context, j store.Job, revision uint64) (uint64, error)
	Next(ctx context.Context, q store.Queue) (*store.Delivery, error)
	More(q store.Queue, most int) ([]*store.Delivery, error)
	QueueHook(ctx context.Context, j store.Job) error
	RemoveEntry(ctx context.Context, entry uint64) error

	CreateMedia(ctx context.Context, account, name string, now func() time.Time) (*store.MediaWriter, error)
	OpenMedia(ctx context.Context, account, name string, now time.Time) (*store.MediaReader, error)
	DeleteMedia(ctx context.Context, account, name string, now time.Time) error
}

// Options configure a Runner. All but Words are required.
type Options struct {
	Store Store
	// Workers is how many jobs run at once.
	Workers int
	// Dir is the folder for the audio of running jobs, of this process alone.
	Dir string
	// Busy reports whether jobs must pause because live streams are late.
	Busy func() bool
	// Words recognises the speech of jobs that ask for it; nil = of none.
	Words words.Recogniser
	// Fetch says which addresses audio may be fetched from, and Hooks which
	// webhooks may be called.
	Fetch, Hooks outbound.Policy
	// HookSecret is the secret that the webhooks of an account are signed with.
	HookSecret func(account string) string
	Now        func() time.Time
	// Counters count what the Runner does.
	Counters *Counters
	// Logger receives one line for each step of a job.
	Logger *slog.Logger

	decoderStall time.Duration // of a test; 0 = capture.DecoderStall
}

// Counters count the jobs of this process.
type Counters struct {
	Running   atomic.Int64
	Succeeded atomic.Int64
	Failed    atomic.Int64
	Canceled  atomic.Int64
	// Returned are attempts that ended without a result: interrupted, or
	// without a store.
	Returned atomic.Int64
	// HooksDelivered and HooksFailed are requests of webhooks.
	HooksDelivered, HooksFailed atomic.Int64
}

// Runner takes jobs from the queue and runs them.
type Runner struct {
	Options

	ctx     context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup
	active  sync.Map // the running jobs, *attempt by id
}

// work is a queue from which workers take deliveries.
type work struct {
	queue    store.Queue
	handle   func(*store.Delivery)
	none     string      // message when the queue does not respond
	failing  atomic.Bool // one of the workers has logged it
	panicked string      // message when handle panics

	mu     sync.Mutex     // of what follows: the order in which the accounts were last served on this node
	served map[string]int // account: number of its newest delivery that was begun
	begun  int            // deliveries so far
	looked time.Time      // when the queue was last searched
}

// Start starts the workers.
func Start(o Options) *Runner {
	o.decoderStall = cmp.Or(o.decoderStall, capture.DecoderStall)
	r := &Runner{Options: o}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	jobs := &work{queue: store.RunQueue, handle: r.take, none: "no jobs can be taken; it is retried", panicked: "a job could not be run"}
	hooks := &work{queue: store.HookQueue, handle: r.deliver, none: "no webhooks can be called; it is retried", panicked: "a webhook could not be called"}
	for range o.Workers {
		r.workers.Go(func() { r.serve(jobs) })
	}
	if o.Workers > 0 {
		for range hookWorkers {
			r.workers.Go(func() { r.serve(hooks) })
		}
	}
	return r
}

// Stop takes no more jobs and interrupts the running ones, which go back to the
// queue. It does not wait.
func (r *Runner) Stop() { r.cancel() }

// Close stops the Runner and waits for its workers.
func (r *Runner) Close() {
	r.Stop()
	r.workers.Wait()
}

// serve handles one delivery of a queue after the other.
func (r *Runner) serve(w *work) {
	for r.ctx.Err() == nil {
		d, err := r.Store.Next(r.ctx, w.queue)
		if err == nil {
			w.failing.Store(false)
			d = r.fair(w, d)
			if err := recovered.Guard(func() error { w.handle(d); return nil }); err != nil {
				r.Logger.Error(w.panicked, "job", d.Job.ID, "error", err)
			}
			continue
		}
		if r.ctx.Err() == nil && !w.failing.Swap(true) {
			r.Logger.Warn(w.none, "error", err)
		}
		_ = protocol.Sleep(r.ctx, retryPause)
	}
}

// take runs the job of a delivery, unless it is over or another worker has it.
func (r *Runner) take(d *store.Delivery) {
	a, err := r.claim(d)
	switch {
	case errors.Is(err, errEnded):
	case errors.Is(err, errOver):
		r.leaveQueue(a.job, d.Job.Entry)
	case errors.Is(err, errTaken):
		r.giveBack(d, takenPause)
	case err != nil:
		if r.ctx.Err() == nil {
			r.Logger.Warn("a job could not be begun yet", "job", d.Job.ID, "error", err)
		}
		r.giveBack(d, retryPause)
	default:
		a.run()
	}
}

// giveBack lets another worker take a delivery after a pause, of another node at once if
// this one stops. If that fails, it is delivered again when its time is over.
func (r *Runner) giveBack(d *store.Delivery, pause time.Duration) {
	if r.ctx.Err() != nil {
		pause = 0
	}
	if err := d.Return(pause); err != nil {
		r.Logger.Warn("a job could not be given back to the queue yet", "job", d.Job.ID, "error", err)
	}
}

// leaveQueue takes the entry of a job that is over out of the queue, after its webhook was
// queued.
func (r *Runner) leaveQueue(j store.Job, entry uint64) {
	ctx, cancel := r.call()
	defer cancel()
	var err error
	if j.Hook != nil && !j.Hook.Done {
		err = r.Store.QueueHook(ctx, j)
	}
	if err == nil {
		if err = r.Store.RemoveEntry(ctx, entry); store.Full(err) {
			return // each of them is delivered again until the disk has space
		}
	}
	if err != nil { // it is delivered again, and nothing else happens then
		r.Logger.Warn("a finished job is still in the queue", "job", j.ID, "error", err)
	}
}

// call is the context of one call of the store. It does not end with the Runner:
// what a worker has finished is written.
func (r *Runner) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), storeTimeout)
}

// Cancel ends a job that was canceled. A worker of this node stops at once. Otherwise the
// job leaves the queue: it waited, or its worker is on another node, which notices it, or dead.
func (r *Runner) Cancel(j store.Job, waited bool) {
	if a, runs := r.active.Load(j.ID); runs {
		a.(*attempt).end(errLost)
		return
	}
	if waited {
		r.Counters.Canceled.Add(1)
	}
	r.leaveQueue(j, j.Entry)
}
