package jobs

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"hubbub/localserver/outbound"
	"hubbub/localserver/store"
	"hubbub/protocol"
)

const (
	// hookTimeout bounds one request.
	hookTimeout = 10 * time.Second
	// hookWorkers is how many requests a node makes at once.
	hookWorkers = 4
)

// hookPauses are the times between the requests of one webhook: three retries.
var hookPauses = []time.Duration{0, time.Minute, 5 * time.Minute}

// deliver makes one request of a webhook, unless the next one is not due. A crash
// after the request repeats it: a webhook is called at least once.
func (r *Runner) deliver(d *store.Delivery) {
	// Reading, the request and writing have their own times, which are less than
	// store.JobAckWait together.
	ctx, cancel := context.WithTimeout(r.ctx, 2*storeTimeout)
	defer cancel()
	j, revision, err := r.Store.Job(ctx, d.Job.Account, d.Job.ID, r.Now())
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && (j.Hook == nil || j.Hook.Done):
		_ = r.Store.RemoveEntry(ctx, d.Job.Entry) // otherwise it is delivered again, and nothing happens
		return
	case err != nil:
		r.giveBack(d, takenPause)
		return
	}
	if wait := j.Hook.Next.Sub(r.Now()); wait > 0 && wait <= slices.Max(hookPauses) { // beyond, the clock was set back
		r.giveBack(d, wait)
		return
	}
	body, err := r.hookBody(ctx, j)
	if err != nil && r.ctx.Err() == nil { // of the store: no request was made
		r.Logger.Warn("a webhook cannot be called yet", "job", j.ID, "error", err)
		r.giveBack(d, takenPause)
		return
	}
	if err == nil {
		err = r.send(r.ctx, j, body)
	}
	if r.ctx.Err() != nil {
		r.giveBack(d, 0)
		return
	}
	j.Hook = r.called(j, err)
	ctx, cancel = r.call()
	defer cancel()
	_, err = r.Store.UpdateJob(ctx, j, revision)
	switch {
	case err != nil:
		r.Logger.Warn("the outcome of a webhook could not be stored; it is called again", "job", j.ID, "error", err)
		r.giveBack(d, takenPause)
	case j.Hook.Done:
		_ = r.Store.RemoveEntry(ctx, d.Job.Entry)
	default:
		r.giveBack(d, max(j.Hook.Next.Sub(r.Now()), 0))
	}
}

// called is the state of a job's webhook after a request with an outcome.
func (r *Runner) called(j store.Job, err error) *store.JobHook {
	hook := *j.Hook
	hook.Tries++
	hook.Done = err == nil || hook.Tries > len(hookPauses)
	if hook.Reason = ""; err == nil {
		r.Counters.HooksDelivered.Add(1)
		r.Logger.Info("webhook called", "job", j.ID, "try", hook.Tries)
		return &hook
	}
	hook.Reason = reason(err)
	r.Counters.HooksFailed.Add(1)
	r.Logger.Warn("a webhook failed", "job", j.ID, "try", hook.Tries, "error", outbound.Reason(err))
	if !hook.Done {
		hook.Next = r.Now().Add(hookPauses[hook.Tries-1]).UTC()
	}
	return &hook
}

// statusError is a response that is no success.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("the response was %d", int(s)) }

// reason is the header x-retry-reason for an error.
func reason(err error) string {
	if status, ok := errors.AsType[statusError](err); ok {
		return "http_" + strconv.Itoa(int(status))
	}
	if errors.Is(err, outbound.ErrRefused) {
		return "address_refused"
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "http_timeout"
	}
	return "connection_failed"
}

// hookBody is the body of a webhook.
func (r *Runner) hookBody(ctx context.Context, j store.Job) ([]byte, error) {
	body := struct {
		JobID  string          `json:"jobId"`
		Status string          `json:"status"`
		Output json.RawMessage `json:"output,omitempty"`
	}{JobID: j.ID, Status: string(j.Status)}
	if j.Status == store.JobSucceeded && !j.Hook.StatusOnly {
		var err error
		body.Output, err = Output(ctx, r.Store, j, r.Now())
		if err != nil && !errors.Is(err, store.ErrNotFound) { // media were purged
			return nil, err
		}
	}
	return protocol.MarshalLine(body)
}

// send makes one request.
func (r *Runner) send(ctx context.Context, j store.Job, raw []byte) error {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, j.Hook.URL, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	timestamp := strconv.FormatInt(r.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "hubbub")
	request.Header.Set("X-Request-Timestamp", timestamp)
	request.Header.Set("X-Signature", sign(r.HookSecret(j.Account), timestamp, raw))
	if j.Hook.Tries > 0 {
		request.Header.Set("X-Retry-Num", strconv.Itoa(j.Hook.Tries))
		request.Header.Set("X-Retry-Reason", j.Hook.Reason)
	}
	response, err := r.Hooks.Do(request, false)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return statusError(response.StatusCode)
	}
	return nil
}

// sign is the signature of a request.
func sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
