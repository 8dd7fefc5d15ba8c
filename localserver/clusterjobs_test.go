//go:build unix

package localserver

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/localserver/apikeys"
	"hubbub/localserver/store"
	"hubbub/protocol/testkit"
)

// TestClusterOfJobs kills the node that runs a job: another one takes the job, completes
// it once, and calls its webhook.
func TestClusterOfJobs(t *testing.T) {
	nats := natsCluster(t)
	dir := t.TempDir()
	line, kill := process(t, dir, childNATS+"="+nats[0].url)
	first := clientOfProcess(t, dir, line)
	// The job runs until its audio is there, which comes after the kill.
	fetching, killed := make(chan struct{}, 1), make(chan struct{})
	audio := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case fetching <- struct{}{}:
		default:
		}
		select {
		case <-killed:
			_, _ = w.Write(audiofile.WAV(make([]float32, 16000)))
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(audio.Close)
	url, calls := receiver(t)
	id := first.submit("diarize", fmt.Sprintf(`{"url":"%s/long.wav","webhook":%q}`, audio.URL, url)).JobID
	select {
	case <-fetching:
	case <-time.After(jobTimeout):
		t.Fatalf("the job does not run: %s", first.do("GET", "/v1/jobs/"+id, testKey, nil).body)
	}
	if body := first.do("GET", "/v1/jobs/"+id, testKey, nil).body; !strings.Contains(string(body), `"status":"running"`) {
		t.Errorf("%s", body)
	}
	kill()
	close(killed)
	second := serve(t, func(o *setup) {
		o.NATS, o.WebhookTo, o.FetchFrom = nats[1].url, []string{"127.0.0.1"}, []string{"127.0.0.1"}
	})
	third := serve(t, func(o *setup) {
		o.NATS, o.WebhookTo, o.FetchFrom = nats[2].url, []string{"127.0.0.1"}, []string{"127.0.0.1"}
	})
	// Meanwhile the others take other jobs.
	if status, body := third.jobEnd(third.submit("diarize", `{"url":"media://gone"}`).JobID); status.Status != "failed" {
		t.Error(body)
	}
	if status, body := second.jobEnd(id); status.Status != "succeeded" {
		t.Error(body)
	}
	if c := second.webhook(calls); !strings.HasPrefix(c.body, fmt.Sprintf(`{"jobId":%q,"status":"succeeded",`, id)) {
		t.Error(c.body)
	}
	rec, _, err := second.store.Job(t.Context(), apikeys.DefaultAccount, id, time.Now())
	if err != nil || rec.Attempts != 2 {
		t.Errorf("%+v %v", rec, err)
	}
	if n := second.jobs.Counters.Succeeded.Load() + third.jobs.Counters.Succeeded.Load(); n != 1 {
		t.Errorf("completed %d times", n)
	}
	for len(calls) > 0 { // once more is allowed, of the same job
		if c := <-calls; !strings.Contains(c.body, id) {
			t.Error(c.body)
		}
	}
}

// Of concurrent writers of a job's record one succeeds, and whoever is refused can read what
// was written: a request for the job whose record a worker writes returns it.
func TestClusterOfRecords(t *testing.T) {
	var nodes [2]*store.Store
	for i, n := range natsCluster(t)[:2] {
		s := testkit.Must(store.Open(t.Context(), store.Options{URL: n.url}))(t)
		t.Cleanup(func() { _ = s.Close() })
		nodes[i] = s
	}
	for i := range 20 {
		j := store.Job{ID: fmt.Sprint("job", i), Account: "a"}
		var writers sync.WaitGroup
		for _, s := range nodes {
			writers.Go(func() {
				if _, err := s.UpdateJob(t.Context(), j, 0); err != nil && !errors.Is(err, store.ErrConflict) {
					t.Error(err)
				}
				if _, _, err := s.Job(t.Context(), j.Account, j.ID, time.Now()); err != nil {
					t.Errorf("%s: %v", j.ID, err)
				}
			})
		}
		writers.Wait()
	}
}
