package jobs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"hubbub/capture/audiofile"
	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// patience bounds what a test waits for on a busy machine.
const patience = 4 * time.Minute

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s := testkit.Must(store.Open(t.Context(), store.Options{}))(t)
	t.Cleanup(func() { testkit.NoError(t, s.Close()) })
	return s
}

// begun are the jobs that have begun, in the order of a log.
func begun(log *bytes.Buffer) (ids []string) {
	for _, line := range regexp.MustCompile(`"job begun","job":"([^"]+)"`).FindAllStringSubmatch(log.String(), -1) {
		ids = append(ids, line[1])
	}
	return ids
}

func runner(t *testing.T, s Store, workers int, log io.Writer) *Runner {
	t.Helper()
	if log == nil {
		log = io.Discard
	}
	return start(t, Options{Store: s, Workers: workers, Logger: slog.New(slog.NewJSONHandler(log, nil))})
}

// never is when no stream is late.
func never() bool { return false }

// start starts a Runner with options that the tests do not care about.
func start(t *testing.T, o Options) *Runner {
	t.Helper()
	o.Dir = cmp.Or(o.Dir, t.TempDir())
	o.Now, o.Counters, o.HookSecret = time.Now, &Counters{}, func(string) string { return "" }
	if o.Busy == nil {
		o.Busy = never
	}
	r := Start(o)
	t.Cleanup(r.Close)
	return r
}

// put stores media of an account.
func put(t *testing.T, s Store, account, name string, content []byte) {
	t.Helper()
	w := testkit.Must(s.CreateMedia(t.Context(), account, name, time.Now))(t)
	defer w.Abort()
	testkit.Must(io.Copy(w, bytes.NewReader(content)))(t)
	testkit.Must(w.Commit(nil))(t)
}

// newJob is a diarization of media://NAME.
func newJob(account, name string) store.Job {
	return store.Job{ID: uuid.Must(uuid.NewV7()).String(), Account: account, Kind: protocol.JobDiarize, Status: store.JobCreated,
		Request: json.RawMessage(`{"url":"media://` + name + `"}`), Created: time.Now(), Updated: time.Now()}
}

// queueing is a store that jobs can be added to.
type queueing interface {
	Store
	CreateJob(ctx context.Context, j store.Job) error
}

func submit(t *testing.T, s queueing, j store.Job) string {
	t.Helper()
	testkit.NoError(t, s.CreateJob(t.Context(), j))
	return j.ID
}

// over waits for the end of a job.
func over(t *testing.T, s Store, account, id string) store.Job {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		j, _, err := s.Job(t.Context(), account, id, time.Now())
		testkit.NoError(t, err)
		if j.Status.Over() {
			return j
		}
	}
	t.Fatalf("job %s has not ended", id)
	return store.Job{}
}

// silence is a WAV file with so many samples.
func silence(samples int) []byte {
	return append(audiofile.WAVHeader(int64(2*samples)), make([]byte, 2*samples)...)
}

// TestManyJobs: 180 jobs on two nodes, good and bad ones, each end once, with a clear
// status.
func TestManyJobs(t *testing.T) {
	if testing.Short() {
		t.Skip("3 s of CPU")
	}
	t.Parallel()
	s := openStore(t)
	noise := silence(16000)
	for i := range noise[audiofile.WAVHeaderBytes:] {
		noise[audiofile.WAVHeaderBytes+i] = byte(rand.IntN(256))
	}
	kinds := []struct {
		name    string
		content []byte
		want    string // of the error; "" = success
	}{
		{"gone", nil, "Nothing is stored at media://gone"}, {"empty", []byte{}, "The audio is empty"},
		{"text", []byte("<html>no audio</html>"), "not audio"}, {"bytes", []byte{0, 1, 2, 3, 0xff, 0xfe, 9, 9, 9, 9, 9, 9}, "audio"},
		{"one", silence(1), ""}, {"none", silence(0), "contains no audio"}, {"cut", silence(16000)[:1001], ""}, {"noise", noise, ""}, {"silence", silence(1600), ""},
	}
	for _, k := range kinds {
		if k.content != nil {
			put(t, s, "a", k.name, k.content)
		}
	}
	var ids []string
	for i := range 180 {
		ids = append(ids, submit(t, s, newJob("a", kinds[i%len(kinds)].name)))
	}
	nodes := []*Runner{runner(t, s, 2, nil), runner(t, s, 2, nil)}
	failed := int64(0)
	for i, id := range ids {
		j, want := over(t, s, "a", id), kinds[i%len(kinds)]
		if want.want != "" {
			failed++
		}
		if (j.Status == store.JobSucceeded) != (want.want == "") || !strings.Contains(j.Error, want.want) || j.Attempts != 1 || j.Request != nil {
			t.Errorf("%s: %+v", want.name, j)
		}
	}
	var succeeded, unsuccessful, returned int64
	for _, n := range nodes {
		n.Close()
		succeeded += n.Counters.Succeeded.Load()
		unsuccessful += n.Counters.Failed.Load()
		returned += n.Counters.Returned.Load()
	}
	if succeeded != int64(len(ids))-failed || unsuccessful != failed || returned != 0 {
		t.Errorf("%d succeeded, %d failed, %d returned, want %d and %d", succeeded, unsuccessful, returned, int64(len(ids))-failed, failed)
	}
	if n, err := s.Queued(t.Context(), store.RunQueue); n != 0 || err != nil {
		t.Errorf("%d jobs are still queued (%v)", n, err)
	}
}

// TestFairness: an account with one job does not wait for all of those of another one.
func TestFairness(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	put(t, s, "many", "audio", silence(1600))
	for range 100 {
		submit(t, s, newJob("many", "audio"))
	}
	small := submit(t, s, newJob("few", "gone"))
	var log bytes.Buffer // read after Close
	r := runner(t, s, 1, &log)
	over(t, s, "few", small)
	r.Close()
	if n := slices.Index(begun(&log), small); n < 0 || n > 10 { // more have begun until the worker was closed
		t.Errorf("%d jobs were begun before", n)
	}
	// Those that were passed over are not lost, nor does their order change.
	all := testkit.Must(s.ListJobs(t.Context(), "many", time.Now(), func(j store.Job) bool { return !j.Status.Over() }))(t)
	log.Reset()
	again := runner(t, s, 1, &log)
	for _, j := range all {
		if end := over(t, s, "many", j.ID); end.Status != store.JobSucceeded {
			t.Errorf("%+v", end)
		}
	}
	again.Close()
	ids := begun(&log)
	sorted := slices.Sorted(slices.Values(ids))
	moved := 0
	for i, id := range ids {
		if at, _ := slices.BinarySearch(sorted, id); at < i-1 || at > i+1 {
			moved++
		}
	}
	if moved > 1 { // one was delivered while the first node closed
		t.Errorf("%d jobs changed their place: %q", moved, ids)
	}
}

// TestClaims: who may run a job, in all states that a record can have.
func TestClaims(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	r := runner(t, s, 0, nil)
	for name, c := range map[string]struct {
		change func(j *store.Job)
		want   error
	}{
		"new":              {func(*store.Job) {}, nil},
		"returned":         {func(j *store.Job) { j.Status = store.JobPending; j.Attempts = 2 }, nil},
		"its node died":    {func(j *store.Job) { j.Status = store.JobRunning }, nil},
		"ended":            {func(j *store.Job) { j.Status = store.JobSucceeded }, errOver},
		"its time is over": {func(j *store.Job) { j.Status, j.Updated = store.JobSucceeded, time.Now().Add(-store.JobTTL) }, errOver},
		"canceled":         {func(j *store.Job) { j.Status = store.JobCanceled }, errOver},
		"ends its servers": {func(j *store.Job) { j.Status, j.Attempts = store.JobPending, maxAttempts }, errEnded},
	} {
		j, revision, err := s.Job(t.Context(), "a", submit(t, s, newJob("a", "x")), time.Now())
		testkit.NoError(t, err)
		c.change(&j) // the record alone: the queue has it as it was created
		testkit.Must(s.UpdateJob(t.Context(), j, revision))(t)
		d := testkit.Must(s.Next(t.Context(), store.RunQueue))(t)
		a, err := r.claim(d)
		if !errors.Is(err, c.want) || err != nil && c.want == nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		now, _, err := s.Job(t.Context(), "a", j.ID, time.Now())
		switch {
		case c.want == errOver:
		case err != nil:
			t.Fatal(err)
		case c.want == nil && (now.Status != store.JobRunning || now.Attempts != j.Attempts+1 || a.id == "" || now.Attempt != a.id):
			t.Errorf("%s: %+v", name, now)
		case c.want == errEnded && (now.Status != store.JobFailed || !strings.Contains(now.Error, "interrupted 5 times") || !strings.Contains(now.Error, "log")):
			t.Errorf("%s: %+v", name, now)
		}
		if c.want == nil {
			a.ctx, a.end = context.WithCancelCause(t.Context())
			a.active.Store(a.job.ID, a)
			if _, err := r.claim(d); !errors.Is(err, errTaken) {
				t.Errorf("%s: claimed twice: %v", name, err)
			}
			a.active.Delete(a.job.ID)
			// The claim of the first is lost when another node has taken the job over.
			other, err := r2(r).claim(d)
			if err != nil {
				t.Errorf("%s: not taken over: %v", name, err)
			}
			a.finish(store.JobSucceeded, "output", "")
			if after, _, err := s.Job(t.Context(), "a", j.ID, time.Now()); err != nil || after.Attempt != other.id || after.Status != store.JobRunning || r.Counters.Succeeded.Load() > 0 {
				t.Errorf("%s: a lost claim was completed: %+v (%v)", name, after, err)
			}
		}
		_ = s.RemoveEntry(t.Context(), d.Job.Entry)
	}
}

// r2 is another node on the same store.
func r2(r *Runner) *Runner {
	return &Runner{Options: r.Options, ctx: r.ctx}
}

// cancelRecord writes what a request to cancel writes, and returns it.
func cancelRecord(t *testing.T, s Store, id string) store.Job {
	t.Helper()
	j, revision, err := s.Job(t.Context(), "a", id, time.Now())
	testkit.NoError(t, err)
	j.Status = store.JobCanceled
	testkit.Must(s.UpdateJob(t.Context(), j, revision))(t)
	return j
}

// TestCanceledWhileNobodyRunsIt: a job that is canceled before a worker has taken it, or whose
// worker is not on this node and may be dead, leaves the queue, and its webhook is queued.
func TestCanceledWhileNobodyRunsIt(t *testing.T) {
	t.Parallel()
	for _, status := range []store.JobStatus{store.JobCreated, store.JobPending, store.JobRunning} {
		s := openStore(t)
		j := newJob("a", "x")
		j.Status, j.Hook = status, &store.JobHook{URL: "https://x.example/"}
		id := submit(t, s, j)
		runner(t, s, 0, nil).Cancel(cancelRecord(t, s, id), status != store.JobRunning)
		for q, want := range map[store.Queue]int{store.RunQueue: 0, store.HookQueue: 1} {
			if n, err := s.Queued(t.Context(), q); n != want || err != nil {
				t.Errorf("%s, %s: %d queued, want %d (%v)", status, q, n, want, err)
			}
		}
	}
}

// TestCanceledWhileItRuns: a job that is canceled ends without a result.
func TestCanceledWhileItRuns(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	put(t, s, "a", "long", silence(30*60*16000))
	id := submit(t, s, newJob("a", "long"))
	r := runner(t, s, 1, nil)
	testkit.Eventually(t, "the job", func() bool {
		j, _, err := s.Job(t.Context(), "a", id, time.Now())
		testkit.NoError(t, err)
		return j.Status == store.JobRunning
	})
	r.Cancel(cancelRecord(t, s, id), false)
	testkit.Eventually(t, "the end of the work", func() bool { return r.Counters.Canceled.Load() > 0 })
	if j, _, err := s.Job(t.Context(), "a", id, time.Now()); err != nil || j.Status != store.JobCanceled || j.Output != "" {
		t.Errorf("%+v %v", j, err)
	}
	if n := r.Counters.Succeeded.Load(); n > 0 {
		t.Errorf("%d jobs succeeded", n)
	}
}

// TestJobsYield: a job pauses while live streams are late, and goes on afterwards.
func TestJobsYield(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	put(t, s, "a", "audio", silence(10*16000))
	var mu sync.Mutex
	asked := 0
	start(t, Options{Store: s, Workers: 1, Logger: slog.New(slog.DiscardHandler),
		Busy: func() bool {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return asked > 3 && asked <= 8
		}})
	if j := over(t, s, "a", submit(t, s, newJob("a", "audio"))); j.Status != store.JobSucceeded {
		t.Errorf("%+v", j)
	}
	mu.Lock()
	defer mu.Unlock()
	if asked < 20+5 { // twice a second of audio, and while it is busy
		t.Errorf("asked %d times", asked)
	}
}

// TestPanic: a job that panics fails at once, and its worker runs the next one.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	put(t, s, "a", "audio", silence(16000))
	start(t, Options{Store: s, Workers: 1, Logger: slog.New(slog.DiscardHandler), Busy: func() bool { panic("busy") }})
	first := submit(t, s, newJob("a", "audio"))
	if j := over(t, s, "a", first); j.Status != store.JobFailed || j.Error != "Internal error" || j.Attempts != 1 {
		t.Errorf("%+v", j)
	}
	if j := over(t, s, "a", submit(t, s, newJob("a", "gone"))); !strings.Contains(j.Error, "Nothing is stored") {
		t.Errorf("%+v", j)
	}
}
