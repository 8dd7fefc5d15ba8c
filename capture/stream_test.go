package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fakeSource gives samples in blocks of any size, then an error.
type fakeSource struct {
	kind    Kind
	samples []float32
	block   func() int
	gate    chan struct{} // if set, a Read takes one
	end     error
	closed  int
	lost    int64
}

func (f *fakeSource) Info() Info        { return Info{Kind: f.kind} }
func (f *fakeSource) overflows() int64  { return f.lost }
func (f *fakeSource) notices() []string { return []string{"noted"} }
func (f *fakeSource) Close() error      { f.closed++; return nil }

func (f *fakeSource) Read(ctx context.Context, dst []float32) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if f.gate != nil {
		select {
		case <-f.gate:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if len(f.samples) == 0 {
		return 0, f.end
	}
	n := len(dst)
	if f.block != nil {
		n = min(n, f.block())
	}
	n = copy(dst[:n], f.samples)
	f.samples = f.samples[n:]
	return n, nil
}

func noisy(n int) []float32 {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.Float64() - 0.5)
	}
	return x
}

// TestChunksAreTheSource: whatever the blocks, the chunks laid end to end are
// the input, then zeros.
func TestChunksAreTheSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := noisy(rapid.IntRange(0, 6000).Draw(t, "samples"))
		most := rapid.IntRange(1, 2500).Draw(t, "block")
		src := &fakeSource{kind: File, samples: x, end: io.EOF, block: func() int { return 1 + rand.IntN(most) }}
		var tapped []float32
		s := Start(context.Background(), src, StreamOptions{Pace: Fast, Queue: rapid.IntRange(1, 4).Draw(t, "queue"), Tap: func(c Chunk) {
			tapped = append(tapped, c.Samples[:c.Valid]...)
		}})
		var got []float32
		seq := int64(0)
		for c := range s.Chunks() {
			if c.Seq != seq || len(c.Samples) != ChunkSamples || c.Valid < 1 || c.Valid > ChunkSamples {
				t.Fatalf("chunk %d: seq %d, %d samples, %d valid", seq, c.Seq, len(c.Samples), c.Valid)
			}
			if c.At() != time.Duration(seq)*ChunkDuration {
				t.Fatalf("chunk %d is at %v", seq, c.At())
			}
			for _, v := range c.Samples[c.Valid:] {
				if v != 0 {
					t.Fatal("the padding is not silent")
				}
			}
			if c.Level != measure(c.Samples[:c.Valid]) {
				t.Fatal("wrong level")
			}
			got = append(got, c.Samples[:c.Valid]...)
			seq++
		}
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, x) || !slices.Equal(tapped, x) {
			t.Fatal("the chunks are not the source")
		}
		st := s.Stats()
		if st.Captured != seq || st.Dropped != 0 || st.Heard != time.Duration(len(x))*time.Second/SampleRate {
			t.Fatalf("%+v after %d samples", st, len(x))
		}
		if src.closed != 1 {
			t.Fatalf("closed %d times", src.closed)
		}
	})
}

func TestLevel(t *testing.T) {
	l := measure([]float32{0.5, -0.5, 0.5, -0.5})
	if l != (Level{RMS: 0.5, Peak: 0.5}) {
		t.Fatalf("%+v", l)
	}
	if measure(nil) != (Level{}) {
		t.Fatal("nothing is not silent")
	}
}

// fakeClock is a clock whose sleeps are never exact: too long by up to late, as
// on a busy machine, and now and then by a second.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
	r   *rand.Rand
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Duration(c.r.Int64N(int64(200 * time.Microsecond)))) // work takes time
	return c.now
}

func (c *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	late := time.Duration(c.r.Int64N(int64(30 * time.Millisecond)))
	if c.r.IntN(2000) == 0 {
		late += time.Second
	}
	c.now = c.now.Add(d + late)
	return ctx.Err()
}

// endless gives silence for so many samples.
type endless struct{ left int }

func (e *endless) Info() Info   { return Info{Kind: File} }
func (e *endless) Close() error { return nil }
func (e *endless) Read(_ context.Context, dst []float32) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(dst), e.left)
	e.left -= n
	return n, nil
}

// TestAnHourInRealTime: with sleeps that are always too long, chunk 36,000 is
// no later than the first ones, and none comes before its time.
func TestAnHourInRealTime(t *testing.T) {
	clock := &fakeClock{now: time.Unix(0, 0), r: rand.New(rand.NewPCG(1, 2))}
	const hour = 3600 * SampleRate
	s := Start(context.Background(), &endless{hour}, StreamOptions{Pace: Realtime, Clock: clock})
	var start time.Time
	over, last := 0, time.Duration(0)
	for c := range s.Chunks() {
		if c.Seq == 0 {
			start = c.Captured.Add(-ChunkDuration)
		}
		late := c.Captured.Sub(start) - c.At() - ChunkDuration
		if late < -50*time.Millisecond {
			t.Fatalf("chunk %d came %v before its time", c.Seq, -late)
		}
		if late > 50*time.Millisecond {
			over++ // one of the long sleeps, and the chunks that catch up with it
		}
		last = late
	}
	if last > 50*time.Millisecond || last < -50*time.Millisecond {
		t.Errorf("after an hour the stream is off by %v", last)
	}
	if got := s.Stats().Heard; got != time.Hour {
		t.Errorf("heard %v", got)
	}
	// 18 long sleeps are expected; each is made good within a second.
	if over > 18*4*11 {
		t.Errorf("%d chunks were more than 50 ms late", over)
	}
	t.Logf("last chunk off by %v, %d of 36000 late", last, over)
}

// TestRealtimeWaits: on the real clock, 0.5 s of audio takes 0.5 s.
func TestRealtimeWaits(t *testing.T) {
	began := time.Now()
	s := Start(context.Background(), &endless{SampleRate / 2}, StreamOptions{Pace: Realtime})
	for range s.Chunks() {
	}
	if d := time.Since(began); d < 490*time.Millisecond {
		t.Fatalf("half a second took %v", d)
	}
}

// TestMicDropsTheOldest: a microphone does not wait for its taker.
func TestMicDropsTheOldest(t *testing.T) {
	const chunks = 20
	taps := 0
	src := &fakeSource{kind: Mic, samples: noisy(chunks * ChunkSamples), end: io.EOF, lost: 3}
	s := Start(context.Background(), src, StreamOptions{Queue: 5, Tap: func(Chunk) { taps++ }})
	deadline := time.Now().Add(30 * time.Second)
	for s.Stats().Dropped < chunks-5 {
		if time.Now().After(deadline) {
			t.Fatal("the microphone waits for its taker")
		}
		time.Sleep(time.Millisecond)
	}
	var seqs []int64
	for c := range s.Chunks() {
		seqs = append(seqs, c.Seq)
	}
	if !slices.Equal(seqs, []int64{15, 16, 17, 18, 19}) {
		t.Errorf("kept %v, want the newest five", seqs)
	}
	st := s.Stats()
	if st.Dropped != 15 || st.Captured != chunks || taps != chunks || st.Overflows != 3 {
		t.Errorf("%+v, %d tapped", st, taps)
	}
	if !slices.Equal(st.Notices, []string{"noted"}) {
		t.Errorf("notices %q", st.Notices)
	}
}

// TestFileWaits: back pressure reaches a file's reader, and nothing is lost.
func TestFileWaits(t *testing.T) {
	src := &fakeSource{kind: File, samples: noisy(40 * ChunkSamples), end: io.EOF}
	s := Start(context.Background(), src, StreamOptions{Pace: Fast, Queue: 2})
	time.Sleep(50 * time.Millisecond)
	if n := s.Stats().Captured; n > 4 {
		t.Errorf("%d chunks were read for a queue of 2", n)
	}
	n := 0
	for range s.Chunks() {
		n++
	}
	if n != 40 || s.Stats().Dropped != 0 {
		t.Errorf("%d chunks, %d dropped", n, s.Stats().Dropped)
	}
}

// TestWhatWasHeardIsKept: a source that fails still gives what came before, the
// last part of a chunk too.
func TestWhatWasHeardIsKept(t *testing.T) {
	broken := errors.New("unplugged")
	src := &fakeSource{kind: Mic, samples: noisy(ChunkSamples + 100), end: broken}
	s := Start(context.Background(), src, StreamOptions{})
	total := 0
	for c := range s.Chunks() {
		total += c.Valid
	}
	if total != ChunkSamples+100 || !errors.Is(s.Err(), broken) {
		t.Fatalf("%d samples, %v", total, s.Err())
	}
}

func TestCancelEndsTheStream(t *testing.T) {
	for name, src := range map[string]*fakeSource{
		"blocked read":  {kind: Stdin, gate: make(chan struct{}), end: io.EOF},
		"blocked queue": {kind: File, samples: noisy(100 * ChunkSamples), end: io.EOF},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		s := Start(ctx, src, StreamOptions{Pace: Fast, Queue: 1})
		time.AfterFunc(20*time.Millisecond, cancel)
		time.Sleep(40 * time.Millisecond)
		for range s.Chunks() {
		}
		if !errors.Is(s.Err(), context.Canceled) || src.closed != 1 {
			t.Errorf("%s: %v, closed %d times", name, s.Err(), src.closed)
		}
	}
}

type panicking struct{ *endless }

func (panicking) Read(context.Context, []float32) (int, error) { panic("boom") }

func TestPanicEndsTheStreamOnly(t *testing.T) {
	s := Start(context.Background(), panicking{&endless{}}, StreamOptions{})
	for range s.Chunks() {
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Fatal(err)
	}
	s = Start(context.Background(), &endless{SampleRate}, StreamOptions{Pace: Fast, Tap: func(Chunk) { panic("tap") }})
	for range s.Chunks() {
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "tap") {
		t.Fatal(err)
	}
}

type idle struct{ *endless }

func (idle) Read(context.Context, []float32) (int, error) { return 0, nil }

func TestASourceWithoutProgressEnds(t *testing.T) {
	s := Start(context.Background(), idle{&endless{}}, StreamOptions{})
	for range s.Chunks() {
	}
	if !errors.Is(s.Err(), io.ErrNoProgress) {
		t.Fatal(s.Err())
	}
}

func TestParsePace(t *testing.T) {
	for _, p := range []Pace{Realtime, Fast} {
		if got, err := ParsePace(fmt.Sprint(p)); err != nil || got != p {
			t.Errorf("%v: %v, %v", p, got, err)
		}
	}
	if _, err := ParsePace("slow"); err == nil || hint(err) == "" {
		t.Error(err)
	}
}
