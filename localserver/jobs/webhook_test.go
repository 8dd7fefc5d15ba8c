package jobs

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/outbound"
	"hubbub/localserver/store"
	"hubbub/protocol/testkit"
)

// unreadable is a store whose media cannot be read.
type unreadable struct {
	*store.Store
	err  error
	wait bool // until the context ends
}

func (u *unreadable) OpenMedia(ctx context.Context, account, name string, now time.Time) (*store.MediaReader, error) {
	if u.wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if u.err != nil {
		return nil, u.err
	}
	return u.Store.OpenMedia(ctx, account, name, now)
}

// TestWebhookWithoutStore: a failure of the store is no request of a webhook.
func TestWebhookWithoutStore(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		bodies <- r.Header.Get("X-Retry-Num") + string(raw)
	}))
	defer receiver.Close()
	hosts := testkit.Must(outbound.ParseHosts([]string{"127.0.0.1"}))(t)
	s := &unreadable{Store: openStore(t)}
	r := start(t, Options{Store: s, Hooks: outbound.Policy{Hosts: hosts}, Logger: slog.New(slog.DiscardHandler)})
	for failure, want := range map[error]string{
		context.DeadlineExceeded: `"output":{"diarization":[]}}`, store.ErrNotFound: `"status":"succeeded"}`,
	} {
		j, d := queuedHook(t, s, receiver.URL)
		put(t, s.Store, store.JobMedia("a"), j.Output, []byte(`{"diarization":[]}`))
		s.err = failure
		r.deliver(d)
		if s.err = nil; failure != store.ErrNotFound {
			r.deliver(d)
		}
		body := ""
		select {
		case body = <-bodies:
		default:
		}
		if !strings.HasPrefix(body, "{") || !strings.HasSuffix(body, want) {
			t.Errorf("%v: the receiver got %q", failure, body)
		}
		if j, _, err := s.Job(t.Context(), "a", j.ID, time.Now()); err != nil || j.Hook.Tries != 1 || !j.Hook.Done {
			t.Errorf("%v: %+v (%v)", failure, j.Hook, err)
		}
	}
}

// TestWebhookWithAnotherClock: a request is due at a time that a clock has stated which was set
// back since, or which is that of another node. It waits no longer than a retry waits.
func TestWebhookWithAnotherClock(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	r := start(t, Options{Store: s, Logger: slog.New(slog.DiscardHandler)})
	for wait, want := range map[time.Duration]bool{-time.Second: true, time.Minute: false, 5 * time.Minute: false, time.Hour: true} {
		j, d := queuedHook(t, s, "http://127.0.0.1:1")
		_, revision, err := s.Job(t.Context(), "a", j.ID, time.Now())
		testkit.NoError(t, err)
		j.Hook.Tries, j.Hook.Next = len(hookPauses), time.Now().Add(wait) // the last request
		testkit.Must(s.UpdateJob(t.Context(), j, revision))(t)
		r.deliver(d)
		if j, _, err := s.Job(t.Context(), "a", j.ID, time.Now()); err != nil || j.Hook.Done != want {
			t.Errorf("due in %v: %+v (%v), want it called %v", wait, j.Hook, err, want)
		}
	}
}

// queuedHook is a job that has succeeded, and the delivery of its webhook.
func queuedHook(t *testing.T, s queueing, url string) (store.Job, *store.Delivery) {
	t.Helper()
	j := newJob("a", "x")
	j.Status, j.Output, j.Hook = store.JobSucceeded, j.ID+"/1", &store.JobHook{URL: url}
	submit(t, s, j)
	testkit.NoError(t, s.QueueHook(t.Context(), j))
	d := testkit.Must(s.Next(t.Context(), store.HookQueue))(t)
	return j, d
}

// TestWebhookOfAServerThatStops: its webhook is called by another node at once, and that
// is no failure, wherever the delivery was.
func TestWebhookOfAServerThatStops(t *testing.T) {
	t.Parallel()
	s := &unreadable{Store: openStore(t), wait: true}
	for _, stop := range []func(*Runner){
		(*Runner).Stop,
		func(r *Runner) { time.AfterFunc(50*time.Millisecond, r.Stop) },
	} {
		var lines bytes.Buffer
		r := start(t, Options{Store: s, Logger: slog.New(slog.NewTextHandler(&lines, nil))})
		_, d := queuedHook(t, s, "http://127.0.0.1:1")
		stop(r)
		r.deliver(d)
		ctx, cancel := context.WithTimeout(t.Context(), takenPause/2)
		again, err := s.Next(ctx, store.HookQueue)
		cancel()
		if err != nil || lines.Len() > 0 {
			t.Fatalf("%v, %s", err, &lines)
		}
		testkit.NoError(t, s.RemoveEntry(t.Context(), again.Job.Entry))
	}
}
