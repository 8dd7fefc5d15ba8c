package engine

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// script is a listener that decides at random but reproducibly: the opinion on
// a frame is fixed once settle frames follow it, and arbitrary before.
type script struct {
	final  []voices // by frame; silence afterwards
	early  []voices // what is thought of a frame that is not settled yet
	settle int
	heard  int
	view   []voices
}

func (s *script) hear(samples []float32) { s.heard += len(samples) }

func (s *script) opinion(frame int) []voices {
	s.view = s.view[:0]
	newest := s.heard / frameSamples
	for f := frame; f < newest; f++ {
		if f+s.settle < newest {
			s.view = append(s.view, at(s.final, f))
		} else {
			s.view = append(s.view, at(s.early, f+newest))
		}
	}
	return s.view
}

func at(frames []voices, i int) voices {
	if i < len(frames) {
		return frames[i]
	}
	return 0
}

// drawFrames makes decisions that look like speech and pauses of any length.
func drawFrames(t *rapid.T, name string) []voices {
	var frames []voices
	for range rapid.IntRange(0, 25).Draw(t, name) {
		v := voices(rapid.Byte().Draw(t, "voices") & rapid.Byte().Draw(t, "fewer"))
		for range rapid.IntRange(1, 30).Draw(t, "frames") {
			frames = append(frames, v)
		}
	}
	return frames
}

func drawConfig(t *rapid.T) Config {
	return Config{Latency: time.Duration(rapid.IntRange(500, 5000).Draw(t, "latency")) * time.Millisecond}
}

// offline closes pauses, drops short turns and sorts the rest: what turns does
// with a view that reaches far enough.
func offline(frames []voices, minOn, minOff int) []Event {
	var edges []Event // Speaker is still the voice
	for v := range MaxSpeakers {
		type run struct{ start, end int }
		var runs []run
		for f, now := range frames {
			if now>>v&1 == 0 {
				continue
			}
			if n := len(runs); n > 0 && f-runs[n-1].end <= minOff {
				runs[n-1].end = f + 1
			} else {
				runs = append(runs, run{f, f + 1})
			}
		}
		for _, r := range runs {
			if r.end-r.start >= minOn {
				edges = append(edges, Event{Start, time.Duration(r.start) * frameDuration, v},
					Event{End, time.Duration(r.end) * frameDuration, v})
			}
		}
	}
	slices.SortFunc(edges, func(a, b Event) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		if a.Kind != b.Kind {
			return int(b.Kind) - int(a.Kind) // ends first
		}
		return a.Speaker - b.Speaker
	})
	label := map[int]int{}
	for i, e := range edges {
		if _, known := label[e.Speaker]; !known {
			label[e.Speaker] = len(label)
		}
		edges[i].Speaker = label[e.Speaker]
	}
	return edges
}

// Settled decisions and a view of minOn + minOff frames give exactly the
// offline rule, whatever the latency beyond.
func TestTurnsEqualTheOfflineRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := drawFrames(t, "stretches")
		c := drawConfig(t)
		samples := len(frames)*frameSamples + rapid.IntRange(0, frameSamples-1).Draw(t, "rest")
		e := newEngine(c, &script{final: frames})
		got := e.Flush(e.Push(make([]float32, samples), nil))
		if want := offline(frames, minOnFrames, minOffFrames); !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}

// Whatever the listener says and however often it changes its mind, the events
// keep what they promise.
func TestEventsKeepTheirPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		l := &script{final: drawFrames(t, "stretches"), early: drawFrames(t, "doubts"), settle: rapid.IntRange(0, 60).Draw(t, "settle")}
		e := newEngine(c, l)
		samples := rapid.IntRange(0, 320*400).Draw(t, "samples")
		pushed := 0
		order := eventOrder{}
		for pushed < samples {
			n := min(stepSamples, samples-pushed)
			events := e.Push(make([]float32, n), nil)
			pushed += n
			order.check(t, events, pushed)
			newest := time.Duration(pushed) * time.Second / SampleRate
			for _, event := range events {
				if lag := newest - event.At; lag > c.Latency {
					t.Fatalf("%v committed %v behind the newest sample, latency %v", event, lag, c.Latency)
				}
			}
			if due := newest - c.Latency; time.Duration(e.next)*frameDuration <= due {
				t.Fatalf("at %v only %d frames are decided", newest, e.next)
			}
		}
		order.check(t, e.Flush(nil), pushed)
		if open := len(order.open); open > 0 {
			t.Fatalf("%d turns are left open", open)
		}
	})
}

// eventOrder follows a stream of events and checks what Event promises.
type eventOrder struct {
	last   time.Duration
	labels int
	open   map[int]time.Duration
}

func (o *eventOrder) check(t interface{ Fatalf(string, ...any) }, events []Event, pushed int) {
	if o.open == nil {
		o.open = map[int]time.Duration{}
	}
	for _, e := range events {
		if e.At < o.last {
			t.Fatalf("%v after an event at %v", e, o.last)
		}
		o.last = e.At
		if samples := int(e.At * SampleRate / time.Second); samples > pushed {
			t.Fatalf("%v lies after the %d samples pushed", e, pushed)
		}
		since, open := o.open[e.Speaker]
		switch e.Kind {
		case Start:
			if open {
				t.Fatalf("%v, but that turn is open", e)
			}
			if e.Speaker > o.labels || e.Speaker < 0 || e.Speaker >= MaxSpeakers {
				t.Fatalf("%v: %d labels are known", e, o.labels)
			}
			o.labels = max(o.labels, e.Speaker+1)
			o.open[e.Speaker] = e.At
		case End:
			if !open || e.At <= since {
				t.Fatalf("%v does not end a turn", e)
			}
			delete(o.open, e.Speaker)
		default:
			t.Fatalf("%v has no kind", e)
		}
	}
}

// The same samples give the same events, however they are cut into calls.
func TestEventsDoNotDependOnChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		final, early := drawFrames(t, "stretches"), drawFrames(t, "doubts")
		settle := rapid.IntRange(0, 60).Draw(t, "settle")
		listen := func() *script { return &script{final: final, early: early, settle: settle} }
		samples := make([]float32, rapid.IntRange(0, 320*200).Draw(t, "samples"))

		whole := newEngine(c, listen())
		want := whole.Flush(whole.Push(samples, nil))
		cut := newEngine(c, listen())
		var got []Event
		for left := samples; len(left) > 0; {
			n := min(len(left), rapid.OneOf(rapid.IntRange(0, 5000), rapid.SampledFrom([]int{0, 1, 319, 320, 1600, 16000})).Draw(t, "chunk"))
			got = cut.Push(left[:n], got)
			left = left[n:]
		}
		got = cut.Flush(got)
		if !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}
