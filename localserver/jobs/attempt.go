package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/recovered"
)

const (
	// renewInterval is how often a worker renews its claim.
	renewInterval = 5 * time.Second
	// claimTime is how long a worker goes on without a renewal of its claim, and how long
	// another one waits for a renewal. It is less than store.JobAckWait, after which the
	// queue delivers the job again.
	claimTime = 15 * time.Second
	// takenPause is when to look again for a job that another worker has.
	takenPause = 10 * time.Second
	// maxAttempts is how often a job is begun: one that ends its server each time
	// must not do so for ever.
	maxAttempts = 5
	// maxRun bounds the time of one attempt.
	maxRun = 24 * time.Hour
)

var (
	// errOver is a job that needs no worker.
	errOver = errors.New("the job is over")
	// errEnded is a job that has just been ended.
	errEnded = errors.New("the job was ended")
	// errTaken is a job that another worker runs.
	errTaken = errors.New("another worker runs the job")
	// errLost is a claim that could not be renewed, or a canceled job.
	errLost = errors.New("the claim on the job is lost")
)

// failure is an error that is the result of a job: its text is for the client.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

func failed(format string, args ...any) error { return &failure{fmt.Sprintf(format, args...)} }

// attempt is one run of a job by one worker.
type attempt struct {
	*Runner
	delivery *store.Delivery
	ctx      context.Context // canceled when the claim is lost or the Runner ends
	end      context.CancelCauseFunc
	id       string // of this attempt, in the record while the claim lasts

	// The record. While the job is computed, only the renewal changes it.
	job      store.Job
	revision uint64
	renewed  time.Time

	thousandths atomic.Int64 // of the work that are done
	notices     []string     // about the audio that was read
}

// claim makes this worker the one that runs a job, also if the record names another
// attempt whose claim is not renewed. errOver and errTaken say why nothing is to be done.
func (r *Runner) claim(d *store.Delivery) (*attempt, error) {
	ctx, cancel := r.call()
	defer cancel()
	a := &attempt{Runner: r, delivery: d}
	var err error
	a.job, a.revision, err = r.Store.Job(ctx, d.Job.Account, d.Job.ID, r.Now())
	if errors.Is(err, store.ErrNotFound) {
		a.job = d.Job // a record that cannot be read is replaced
		if a.revision, err = r.Store.UpdateJob(ctx, a.job, a.revision); errors.Is(err, store.ErrConflict) {
			a.job, a.revision, err = r.Store.Job(ctx, d.Job.Account, d.Job.ID, r.Now())
			if errors.Is(err, store.ErrNotFound) { // its time is over; else the handler has just written it
				return a, errOver
			}
		}
	}
	_, runs := r.active.Load(a.job.ID)
	switch {
	case err != nil:
		return a, err
	case a.job.Status.Over():
		return a, errOver
	case runs: // after the machine was suspended
		return a, errTaken
	}
	if d.Again && a.job.Status == store.JobRunning {
		// When its leader changes, the queue may deliver a job again whose worker lives.
		if err = protocol.Sleep(r.ctx, claimTime); err != nil {
			return a, err
		}
		ctx, cancel = r.call()
		defer cancel()
		if _, now, err := r.Store.Job(ctx, a.job.Account, a.job.ID, r.Now()); err != nil || now != a.revision {
			return a, cmp.Or(err, errTaken)
		}
	}
	if a.job.Attempts >= maxAttempts {
		a.finish(store.JobFailed, "", fmt.Sprintf("The job was interrupted %d times. The server may not have enough memory for it, or its log says why.", maxAttempts))
		return a, errEnded
	}
	a.id = uuid.NewString()
	a.job.Status, a.job.Attempt, a.job.Progress = store.JobRunning, a.id, 0
	a.job.Attempts++
	if err = a.write(ctx); errors.Is(err, store.ErrConflict) {
		err = errTaken
	}
	return a, err
}

// write replaces the record. An earlier write of this attempt whose response was lost is
// no conflict: the claim lasts.
func (a *attempt) write(ctx context.Context) error {
	a.job.Updated = a.Now().UTC()
	next, err := a.Store.UpdateJob(ctx, a.job, a.revision)
	if errors.Is(err, store.ErrConflict) {
		j, revision, lost := a.Store.Job(ctx, a.job.Account, a.job.ID, a.Now())
		if lost == nil && j.Status == store.JobRunning && j.Attempt == a.id {
			next, err = a.Store.UpdateJob(ctx, a.job, revision)
		}
	}
	if err == nil {
		a.revision, a.renewed = next, time.Now()
	}
	return err
}

// run computes the job and writes its end.
func (a *attempt) run() {
	began := time.Now()
	log := a.Logger.With("job", a.job.ID, "kind", a.job.Kind, "account", a.job.Account)
	log.Info("job begun", "attempt", a.job.Attempts)
	ctx, cancel := context.WithTimeout(a.Runner.ctx, maxRun)
	defer cancel()
	a.ctx, a.end = context.WithCancelCause(ctx)
	defer a.end(nil)
	a.active.Store(a.job.ID, a)
	defer a.active.Delete(a.job.ID)
	a.Counters.Running.Add(1)
	defer a.Counters.Running.Add(-1)

	var renewal sync.WaitGroup
	// The claim lasts until the computation has returned, also when the Runner ends.
	renewing, stop := context.WithCancel(context.Background())
	renewal.Go(func() {
		protocol.Every(renewing, renewInterval, func() {
			if !a.renew() {
				a.end(errLost)
				stop()
			}
		})
	})
	var output []byte
	err := recovered.Guard(func() (err error) {
		output, err = a.compute()
		return err
	})
	if recovered.Caught(err) {
		log.Error("a job panicked", "error", err)
		err = failed("Internal error")
	}
	stop()
	renewal.Wait()

	fail, fails := errors.AsType[*failure](err)
	switch {
	case errors.Is(context.Cause(a.ctx), errLost):
		a.abandon()
	case a.Runner.ctx.Err() != nil && !fails:
		a.interrupted()
	case err == nil:
		a.succeed(output)
	case fails:
		a.finish(store.JobFailed, "", fail.text)
	case errors.Is(a.ctx.Err(), context.DeadlineExceeded):
		a.finish(store.JobFailed, "", fmt.Sprintf("The job took longer than %v.", maxRun))
	default: // of the store or the machine
		a.repeat("a job could not be completed; it is run again", err)
	}
	ended := "job ended"
	if a.job.Attempt != a.id || !a.job.Status.Over() { // it runs again, or another worker has it
		ended = "attempt of a job ended"
	}
	log.Info(ended, "status", string(a.job.Status), "cause", a.job.Error, "duration", time.Since(began))
}

// renew renews the claim, and reports whether it lasts.
func (a *attempt) renew() bool {
	a.job.Progress = float64(a.thousandths.Load()) / 1000
	ctx, cancel := a.call()
	defer cancel()
	err := a.write(ctx)
	switch {
	case err == nil:
		err = a.delivery.Extend()
	case errors.Is(err, store.ErrConflict), time.Since(a.renewed) > claimTime:
		return false
	}
	if err != nil {
		a.Logger.Warn("the claim on a job could not be renewed yet", "job", a.job.ID, "error", err)
	}
	return true
}

// succeed stores the output and then the end of the job: the record refers to a
// complete object.
func (a *attempt) succeed(output []byte) {
	name := a.job.ID + "/" + a.job.Attempt
	err := a.storeOutput(name, output)
	if _, over := errors.AsType[*store.QuotaError](err); over || store.Full(err) {
		a.finish(store.JobFailed, "", "The server has no space for the result.")
		return
	}
	if err != nil {
		a.repeat("the result of a job could not be stored; it is run again", err)
		return
	}
	a.finish(store.JobSucceeded, name, "")
}

// repeat gives the job back to the queue because of a failure that is not its own.
func (a *attempt) repeat(message string, err error) {
	a.Logger.Warn(message, "job", a.job.ID, "error", err)
	a.Counters.Returned.Add(1)
	a.giveBack(a.delivery, takenPause)
}

// storeOutput stores the output as an object of a name, which Output reads.
func (a *attempt) storeOutput(name string, output []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w, err := a.Store.CreateMedia(ctx, store.JobMedia(a.job.Account), name, a.Now)
	if err != nil {
		return err
	}
	defer w.Abort()
	_, err = w.Write(output)
	if err == nil {
		_, err = w.Commit(nil)
	}
	return err
}

// Output is the field output of a job, in responses and webhooks; nil = none. The error is
// store.ErrNotFound for a job that has succeeded and whose output was deleted.
func Output(ctx context.Context, s Store, j store.Job, now time.Time) (json.RawMessage, error) {
	switch j.Status {
	case store.JobFailed:
		return json.Marshal(protocol.JobError{Error: j.Error})
	case store.JobSucceeded:
	default:
		return nil, nil
	}
	m, err := s.OpenMedia(ctx, store.JobMedia(j.Account), j.Output, now)
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }()
	return io.ReadAll(m)
}

// finish writes the end of the job and removes it from the queue.
func (a *attempt) finish(status store.JobStatus, output, text string) {
	a.job.Status, a.job.Output, a.job.Error = status, output, text
	if status == store.JobSucceeded {
		a.job.Progress = 1
	}
	ctx, cancel := a.call()
	defer cancel()
	err := a.write(ctx)
	switch {
	case errors.Is(err, store.ErrConflict):
		if output != "" {
			_ = a.Store.DeleteMedia(ctx, store.JobMedia(a.job.Account), output, a.Now()) // or it expires
		}
		a.abandon()
		return
	case err != nil: // it is delivered again
		a.Logger.Warn("the end of a job could not be stored; it is run again", "job", a.job.ID, "error", err)
		a.Counters.Returned.Add(1)
		return
	case status == store.JobSucceeded:
		a.Counters.Succeeded.Add(1)
	default:
		a.Counters.Failed.Add(1)
	}
	a.leaveQueue(a.job, a.delivery.Job.Entry)
}

// abandon ends an attempt whose claim is lost. A job that was canceled leaves the
// queue; another worker has a delivery of its own.
func (a *attempt) abandon() {
	ctx, cancel := a.call()
	defer cancel()
	j, _, err := a.Store.Job(ctx, a.job.Account, a.job.ID, a.Now())
	if err == nil {
		a.job = j
	}
	if err == nil && j.Status.Over() {
		if j.Status == store.JobCanceled {
			a.Counters.Canceled.Add(1)
		}
		a.leaveQueue(j, a.delivery.Job.Entry)
		return
	}
	a.Counters.Returned.Add(1)
}

// interrupted gives the job back to the queue because the Runner ends.
func (a *attempt) interrupted() {
	a.Counters.Returned.Add(1)
	a.job.Status, a.job.Attempt = store.JobPending, ""
	a.job.Attempts-- // it is not the job's fault
	ctx, cancel := a.call()
	defer cancel()
	if err := a.write(ctx); errors.Is(err, store.ErrConflict) {
		a.abandon()
		return
	}
	a.giveBack(a.delivery, 0)
}
