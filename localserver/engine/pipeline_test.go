package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/enginetest"
	"hubbub/localserver/engine/inference"
	"hubbub/protocol/testkit"
)

// dialogue is two speakers of the demo in turns, four seconds at a time: A 1 to 5, B 5.5 to 9.5, A 10 to 14, B 14.5
// to 18.5 s, 19 s in all.
func dialogue(t testing.TB) []float32 {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var x []float32
	quiet := func(seconds float64) {
		for range int(seconds * SampleRate) {
			x = append(x, float32(0.0005*random.NormFloat64()))
		}
	}
	quiet(1)
	all := enginetest.Demo(t)
	for _, from := range []float64{0.90, 13.60, 62.50, 49.02} { // slt, kal, slt, kal, as demo.rttm has it
		x = append(x, all[int(from*SampleRate):][:4*SampleRate]...)
		quiet(0.5)
	}
	return x
}

func TestDialogue(t *testing.T) {
	for _, latency := range []time.Duration{500 * time.Millisecond, time.Second, 5 * time.Second} {
		e := testkit.Must(New(Config{Latency: latency}))(t)
		events := e.Flush(e.Push(dialogue(t), nil))
		// Half a second of a new speaker can be too little to decide whether the
		// speaker is known: it gets no label yet.
		near := 0.3
		if latency < time.Second {
			near = 0.5
		}
		starts := map[time.Duration]bool{}
		for _, at := range []float64{1, 5.5, 10, 14.5} {
			for _, event := range events {
				if event.Kind == Start && math.Abs(event.At.Seconds()-at) < near {
					starts[time.Duration(at*float64(time.Second))] = true
				}
			}
		}
		if len(starts) != 4 {
			t.Errorf("latency %v: of the starts at 1, 5.5, 10 and 14.5 s only %v are in %v", latency, starts, events)
		}
		for _, event := range events {
			if s := event.At.Seconds(); event.Kind == End && s > 18.9 {
				t.Errorf("latency %v: %v lies in the silence at the end", latency, event)
			}
		}
	}
}

// Noise, a full-scale square wave, silence, one click.
func TestAnySignal(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	sounds := map[string]func(i int) float32{
		"digital silence": func(int) float32 { return 0 },
		"noise":           func(int) float32 { return float32(random.NormFloat64()) },
		"square":          func(i int) float32 { return float32(1 - i/80%2*2) },
		"click":           func(i int) float32 { return float32(max(0, 1-i)) },
		"huge":            func(i int) float32 { return math.MaxFloat32 },
		"nothing finite":  func(i int) float32 { return float32(math.NaN()) },
		"offset":          func(i int) float32 { return 0.9 },
	}
	for name, sound := range sounds {
		e := testkit.Must(New(Config{MaxSpeakers: 1}))(t)
		x := make([]float32, 20*SampleRate+123)
		for i := range x {
			x[i] = sound(i)
		}
		order := eventOrder{}
		order.check(t, e.Flush(e.Push(x, nil)), len(x))
		if len(order.open) > 0 || order.speakers > 1 {
			t.Errorf("%s: %d turns open, %d speakers", name, len(order.open), order.speakers)
		}
		if (name == "digital silence" || name == "nothing finite") && order.speakers > 0 {
			t.Errorf("%s: there are speakers", name)
		}
	}
}

func TestAudioGivesTheSameEventsInAnyChunks(t *testing.T) {
	x := dialogue(t)
	run := func(chunk func() int) []Event {
		e := testkit.Must(New(Config{}))(t)
		var events []Event
		for left := x; len(left) > 0; {
			n := min(len(left), chunk())
			events = e.Push(left[:n], events)
			left = left[n:]
		}
		return e.Flush(events)
	}
	want := run(func() int { return len(x) })
	if len(want) == 0 {
		t.Fatal("no events")
	}
	random := rand.New(rand.NewPCG(5, 6))
	for name, chunk := range map[string]func() int{
		"1":      func() int { return 1 },
		"1600":   func() int { return 1600 },
		"16000":  func() int { return 16000 },
		"random": func() int { return random.IntN(3000) },
	} {
		testkit.EqualSlices(t, run(chunk), want, "chunks of", name)
	}
}

// newestWindow is the newest frame of any window of the networks.
type newestWindow struct {
	*inference.Stream
	windows, end int
}

func (s *newestWindow) Push(samples []float32, last bool) *clustering.Window {
	w := s.Stream.Push(samples, last)
	if w != nil {
		s.windows, s.end = s.windows+1, w.First+len(w.SpeechProbability)
	}
	return w
}

// All audio is in a window when the input has ended, and no window comes twice.
func TestTheEndIsInAWindow(t *testing.T) {
	x := dialogue(t)
	for _, c := range []struct{ samples, windows int }{{0, 0}, {399, 0}, {800, 1}, {chunkSamples, 1}, {2 * chunkSamples, 1},
		{3 * chunkSamples, 2}, {3*chunkSamples + 800, 2}, {4 * chunkSamples, 2}} {
		s := &newestWindow{Stream: inference.New(hopSamples)}
		e := testkit.Must(NewWith(Config{}, clustering.Default(), s))(t)
		e.Flush(e.Push(x[:c.samples], nil))
		if frames := c.samples / frameSamples; s.windows != c.windows || s.end < frames-1 { // the last frame can be shorter than one of the features
			t.Errorf("%d samples, %d frames: %d windows, up to frame %d", c.samples, frames, s.windows, s.end)
		}
	}
}

// Streams at once share only what none of them writes: each has the events that it
// would have alone. make test runs this with the race detector in the engine's
// packages.
func TestStreamsAtOnce(t *testing.T) {
	x := dialogue(t)[:11*SampleRate]
	run := func() ([]Event, error) {
		e, err := New(Config{})
		if err != nil {
			return nil, err
		}
		var events []Event
		for chunk := range slices.Chunk(x, chunkSamples) {
			events = e.Push(chunk, events)
		}
		return e.Flush(events), nil
	}
	var got [2][]Event
	var group errgroup.Group
	for i := range got {
		group.Go(func() (err error) {
			got[i], err = run()
			return err
		})
	}
	testkit.NoError(t, group.Wait())
	want, err := run()
	if err != nil || len(want) == 0 {
		t.Fatalf("%d events, %v", len(want), err)
	}
	for i := range got {
		testkit.EqualSlices(t, got[i], want, "stream", i)
	}
}

func TestPushDoesNotAllocate(t *testing.T) {
	e := testkit.Must(New(Config{}))(t)
	x := dialogue(t)
	events := make([]Event, 0, 1024)
	events = e.Push(x, events)
	at := 0
	if n := testing.AllocsPerRun(50, func() {
		events = e.Push(x[at:at+chunkSamples], events[:0])
		at += chunkSamples
	}); n > 0 {
		t.Errorf("%v allocations for a chunk", n)
	}
}

// BenchmarkPushSecond measures the CPU time of a second of audio, and so how many
// streams one core can process in real time.
func BenchmarkPushSecond(b *testing.B) {
	e := testkit.Must(New(Config{}))(b)
	x := dialogue(b)
	events := make([]Event, 0, 1024)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := i % 18 * SampleRate
		events = e.Push(x[at:at+SampleRate], events[:0])
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "streams/core")
}
