package capture

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"hubbub/protocol/recovered"
	"hubbub/protocol/testkit"
)

// fakeSource delivers samples in blocks of any size, then an error.
type fakeSource struct {
	kind    Kind
	samples []float32
	block   func() int
	gate    chan struct{} // if set, a Read takes one
	end     error
	closed  int
}

func (f *fakeSource) Info() Info        { return Info{Kind: f.kind, Tracks: 1} }
func (f *fakeSource) Notices() []string { return []string{"notice"} }
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

// TestChunksAreTheSource: the concatenated chunks are the input, padded with
// zeros, for any block sizes.
func TestChunksAreTheSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := noisy(rapid.IntRange(0, 6000).Draw(t, "samples"))
		most := rapid.IntRange(1, 2500).Draw(t, "block")
		src := &fakeSource{kind: File, samples: x, end: io.EOF, block: func() int { return 1 + rand.IntN(most) }}
		s := NewChunkReader(context.Background(), src, Fast)
		var got []float32
		seq := int64(0)
		for c := range s.Chunks() {
			if c.Seq != seq || len(c.Samples) != ChunkSamples || c.Valid < 1 || c.Valid > ChunkSamples {
				t.Fatalf("chunk %d: seq %d, %d samples, %d valid", seq, c.Seq, len(c.Samples), c.Valid)
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
		testkit.NoError(t, s.Err())
		if !slices.Equal(got, x) {
			t.Fatal("the chunks are not the source")
		}
		st := s.Stats()
		if st.Position != time.Duration(len(x))*time.Second/SampleRate {
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

// silence delivers that many zeros.
type silence struct{ left int }

func (e *silence) Info() Info        { return Info{Kind: File, Tracks: 1} }
func (e *silence) Close() error      { return nil }
func (e *silence) Notices() []string { return nil }
func (e *silence) Read(_ context.Context, dst []float32) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(dst), e.left)
	e.left -= n
	return n, nil
}

// TestAnHourInRealTime: on a busy machine, which sometimes stops for a second,
// delays do not accumulate over 36,000 chunks, and none comes early.
func TestAnHourInRealTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		start, over, last := time.Now(), 0, time.Duration(0)
		s := NewChunkReader(t.Context(), &silence{3600 * SampleRate}, Realtime)
		for c := range s.Chunks() {
			last = time.Since(start) - time.Duration(c.Seq+1)*ChunkDuration
			if last < 0 {
				t.Errorf("chunk %d came %v before its time", c.Seq, -last)
			}
			if last > 50*time.Millisecond {
				over++ // after one of the long stops
			}
			time.Sleep(time.Duration(random.Int64N(int64(30 * time.Millisecond))))
			if random.IntN(2000) == 0 {
				time.Sleep(time.Second)
			}
		}
		if last > 50*time.Millisecond {
			t.Errorf("after an hour the stream is off by %v", last)
		}
		testkit.Equal(t, s.Stats().Position, time.Hour, "position")
		// 18 long stops are expected; the delay of each is made up within a second
		// or so.
		if over == 0 || over > 18*4*11 {
			t.Errorf("%d chunks were more than 50 ms late", over)
		}
	})
}

// TestSourceWaits: no chunk is dropped, whatever the source, and none is read before it is asked for.
func TestSourceWaits(t *testing.T) {
	for name, kind := range map[string]Kind{"file": File, "microphone": Mic} {
		t.Run(name, func(t *testing.T) {
			const chunks = 40
			src := &fakeSource{kind: kind, samples: noisy(chunks * ChunkSamples), end: io.EOF}
			s := NewChunkReader(context.Background(), src, Fast)
			n := int64(0)
			for c := range s.Chunks() {
				testkit.Equal(t, s.Stats().Position, time.Duration(n+1)*ChunkDuration, "were read for chunk", n)
				if c.Seq != n {
					t.Fatalf("chunk %d follows chunk %d", c.Seq, n-1)
				}
				n++
			}
			st := s.Stats()
			if n != chunks || st.Position != chunks*ChunkDuration {
				t.Errorf("%d chunks, %+v", n, st)
			}
			testkit.EqualSlices(t, st.Notices, []string{"notice"}, "notices")
		})
	}
}

// TestAudioBeforeAFailure: the audio before a failure is delivered, also an
// incomplete chunk.
func TestAudioBeforeAFailure(t *testing.T) {
	broken := errors.New("unplugged")
	src := &fakeSource{kind: Mic, samples: noisy(ChunkSamples + 100), end: broken}
	s := NewChunkReader(context.Background(), src, Realtime)
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
		"blocked read": {kind: Stdin, gate: make(chan struct{}), end: io.EOF},
		"real time":    {kind: File, samples: noisy(100 * ChunkSamples), end: io.EOF},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		s := NewChunkReader(ctx, src, Realtime)
		time.AfterFunc(20*time.Millisecond, cancel)
		for range s.Chunks() {
		}
		if !errors.Is(s.Err(), context.Canceled) || src.closed != 1 {
			t.Errorf("%s: %v, closed %d times", name, s.Err(), src.closed)
		}
	}
}

type panicking struct{ *silence }

func (panicking) Read(context.Context, []float32) (int, error) { panic("boom") }

func TestPanicEndsOnlyTheStream(t *testing.T) {
	s := NewChunkReader(context.Background(), panicking{&silence{}}, Realtime)
	for range s.Chunks() {
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Fatal(err)
	}
	var d interface{ Stack() []byte } // for the crash report
	if !errors.As(s.Err(), &d) || !strings.Contains(string(d.Stack()), "panicking") {
		t.Errorf("%v has no stack of the panic", s.Err())
	}
}

// TestLoopThatEnds: the source is closed when the loop over its chunks ends before it, or panics.
func TestLoopThatEnds(t *testing.T) {
	for name, end := range map[string]func(){"break": func() {}, "panic": func() { panic("loop") }} {
		src := &fakeSource{kind: File, samples: noisy(2 * ChunkSamples), end: io.EOF}
		s := NewChunkReader(t.Context(), src, Fast)
		_ = recovered.Guard(func() error {
			for range s.Chunks() {
				end()
				break
			}
			return nil
		})
		if s.Err() != nil || src.closed != 1 {
			t.Errorf("%s: %v, closed %d times", name, s.Err(), src.closed)
		}
	}
}
