package engine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubbub/localserver/engine/decoder"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol/testkit"
)

// script is an activitySource with given activity: that of a frame is final once
// delay frames follow it, and arbitrary before.
type script struct {
	final    []speakerSet // by frame; silence afterwards
	early    []speakerSet // activity of frames that are not final
	delay    int
	received int
	frames   []speakerSet
	matchAt  int // samples after which all speakers are recognised; 0 = never
	// unmatchAt is after how many samples they no longer are; 0 = never.
	unmatchAt int
}

func (s *script) push(samples []float32) { s.received += len(samples) }

func (s *script) appendSnapshot(out []byte) []byte               { return out }
func (s *script) enrol([]voiceprint.Person, voiceprint.Matching) {}
func (s *script) match(int) string {
	if s.matchAt > 0 && s.received >= s.matchAt && (s.unmatchAt == 0 || s.received < s.unmatchAt) {
		return "Sam"
	}
	return ""
}
func (s *script) restoreSnapshot([]byte, [MaxSpeakers]string) error {
	return errors.New("a script has no snapshot")
}

func (s *script) activity(first int) []speakerSet {
	s.frames = s.frames[:0]
	newest := s.received / frameSamples
	for f := first; f < newest; f++ {
		if f+s.delay < newest {
			s.frames = append(s.frames, at(s.final, f))
		} else {
			s.frames = append(s.frames, at(s.early, f+newest))
		}
	}
	return s.frames
}

func at(frames []speakerSet, i int) speakerSet {
	if i < len(frames) {
		return frames[i]
	}
	return 0
}

// drawFrames makes activity that looks like speech, with pauses of any length.
func drawFrames(t *rapid.T, name string) []speakerSet {
	var frames []speakerSet
	for range rapid.IntRange(0, 25).Draw(t, name) {
		v := speakerSet(rapid.Byte().Draw(t, "speakers") & rapid.Byte().Draw(t, "fewer"))
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
// with activity that reaches far enough ahead.
func offline(frames []speakerSet, minTurn, maxPause int) []Event {
	var edges []Event
	for v := range MaxSpeakers {
		type run struct{ start, end int }
		var runs []run
		for f, now := range frames {
			if now>>v&1 == 0 {
				continue
			}
			if n := len(runs); n > 0 && f-runs[n-1].end <= maxPause {
				runs[n-1].end = f + 1
			} else {
				runs = append(runs, run{f, f + 1})
			}
		}
		for _, r := range runs {
			if r.end-r.start >= minTurn {
				edges = append(edges, Event{Kind: Start, At: time.Duration(r.start) * frameDuration, Speaker: v},
					Event{Kind: End, At: time.Duration(r.end) * frameDuration, Speaker: v})
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
	return edges
}

// Final activity that reaches minTurn + maxPause frames ahead gives exactly the
// offline rule, whatever the latency beyond.
func TestTurnsEqualTheOfflineRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := drawFrames(t, "stretches")
		c := drawConfig(t)
		samples := len(frames)*frameSamples + rapid.IntRange(0, frameSamples-1).Draw(t, "rest")
		e := newEngine(c, &script{final: frames})
		got := e.Flush(e.Push(make([]float32, samples), nil))
		if want := offline(frames, decoder.MinTurnFrames, decoder.MaxPauseFrames); !slices.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}

// Whatever the activity and however often it changes, the events keep what Event
// promises.
func TestEventsKeepTheirPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		s := &script{final: drawFrames(t, "stretches"), early: drawFrames(t, "changing"), delay: rapid.IntRange(0, 60).Draw(t, "delay"),
			matchAt: rapid.IntRange(0, 320*400).Draw(t, "recognised after")}
		e := newEngine(c, s)
		samples := rapid.IntRange(0, 320*400).Draw(t, "samples")
		pushed := 0
		order := eventOrder{}
		for pushed < samples {
			n := min(chunkSamples, samples-pushed)
			events := e.Push(make([]float32, n), nil)
			pushed += n
			order.check(t, events, pushed)
			newest := time.Duration(pushed) * time.Second / SampleRate
			for _, event := range events {
				if lag := newest - event.At; lag > c.Latency {
					t.Fatalf("%v committed %v behind the newest sample, latency %v", event, lag, c.Latency)
				}
			}
			if due := newest - c.Latency; time.Duration(e.committed)*frameDuration <= due {
				t.Fatalf("at %v only %d frames are committed", newest, e.committed)
			}
		}
		order.check(t, e.Flush(nil), pushed)
		if open := len(order.open); open > 0 {
			t.Fatalf("%d turns are left open", open)
		}
	})
}

// A speaker who is recognised during a turn is announced at once: the turn ends and
// another one begins. In a pause, the next turn has the name.
func TestAMatchDuringATurn(t *testing.T) {
	frames := make([]speakerSet, 200)
	for i := range frames {
		if i >= 10 && i < 100 || i >= 130 {
			frames[i] = 1
		}
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		name    string
		matchAt time.Duration // of the input, 1 s ahead of what is committed
		until   time.Duration // of the match; 0 = for ever
		want    []Event
	}{
		{"during the first turn", 2000 * ms, 0, []Event{{Kind: Start, At: 200 * ms}, {Kind: End, At: 1000 * ms}, {Kind: Start, At: 1000 * ms, Match: "Sam"},
			{Kind: End, At: 2000 * ms}, {Kind: Start, At: 2600 * ms, Match: "Sam"}, {Kind: End, At: 4000 * ms}}},
		{"withdrawn during the second turn", 2000 * ms, 3800 * ms, []Event{{Kind: Start, At: 200 * ms}, {Kind: End, At: 1000 * ms}, {Kind: Start, At: 1000 * ms, Match: "Sam"},
			{Kind: End, At: 2000 * ms}, {Kind: Start, At: 2600 * ms, Match: "Sam"}, {Kind: End, At: 2800 * ms}, {Kind: Start, At: 2800 * ms}, {Kind: End, At: 4000 * ms}}},
		{"in the pause", 3300 * ms, 0, []Event{{Kind: Start, At: 200 * ms}, {Kind: End, At: 2000 * ms}, {Kind: Start, At: 2600 * ms, Match: "Sam"}, {Kind: End, At: 4000 * ms}}},
		{"too early in the turn", 1300 * ms, 0, []Event{{Kind: Start, At: 200 * ms}, {Kind: End, At: 400 * ms}, {Kind: Start, At: 400 * ms, Match: "Sam"},
			{Kind: End, At: 2000 * ms}, {Kind: Start, At: 2600 * ms, Match: "Sam"}, {Kind: End, At: 4000 * ms}}},
	} {
		e := newEngine(Config{Latency: time.Second}, &script{final: frames, matchAt: int(c.matchAt * SampleRate / time.Second), unmatchAt: int(c.until * SampleRate / time.Second)})
		testkit.EqualSlices(t, e.Flush(e.Push(make([]float32, len(frames)*frameSamples), nil)), c.want, c.name)
	}
}

// eventOrder follows a stream of events and checks what Event promises.
type eventOrder struct {
	last     time.Duration
	speakers int // of whom there are events
	seen     [MaxSpeakers]bool
	open     map[int]time.Duration
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
			if e.Speaker < 0 || e.Speaker >= MaxSpeakers {
				t.Fatalf("%v has no speaker", e)
			}
			if !o.seen[e.Speaker] {
				o.seen[e.Speaker] = true
				o.speakers++
			}
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

// The same samples give the same events, however they are divided into calls.
func TestEventsDoNotDependOnChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		final, early := drawFrames(t, "stretches"), drawFrames(t, "changing")
		delay := rapid.IntRange(0, 60).Draw(t, "delay")
		source := func() *script { return &script{final: final, early: early, delay: delay} }
		samples := make([]float32, rapid.IntRange(0, 320*200).Draw(t, "samples"))

		whole := newEngine(c, source())
		want := whole.Flush(whole.Push(samples, nil))
		cut := newEngine(c, source())
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
