package stream

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubbub/localserver/engine"
	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
)

// contract checks events against everything that the contract says about them.
type contract struct {
	t interface {
		Helper()
		Fatalf(string, ...any)
	}
	last  float64
	open  map[string]float64
	seen  []string
	turns int
}

func (l *contract) check(e protocol.Event, received time.Duration) {
	l.t.Helper()
	if e.Timestamp*1000 != math.Trunc(e.Timestamp*1000) && protocol.Round1ms(e.Timestamp) != e.Timestamp {
		l.t.Fatalf("%s is not whole milliseconds", e.Raw)
	}
	if e.Timestamp < l.last || e.Timestamp < 0 {
		l.t.Fatalf("%s comes after %v", e.Raw, l.last)
	}
	if e.Timestamp > received.Seconds() {
		l.t.Fatalf("%s after %v of audio", e.Raw, received)
	}
	l.last = e.Timestamp
	since, open := l.open[e.Speaker]
	switch e.Type {
	case protocol.TypeSpeakerStart:
		if open {
			l.t.Fatalf("%s: there is a turn open since %v", e.Raw, since)
		}
		if !slices.Contains(l.seen, e.Speaker) {
			if want := protocol.SpeakerLabel(len(l.seen)); e.Speaker != want {
				l.t.Fatalf("%s: the next label is %s", e.Raw, want)
			}
			l.seen = append(l.seen, e.Speaker)
		}
		l.open[e.Speaker] = e.Timestamp
	case protocol.TypeSpeakerEnd:
		if !open || e.Timestamp <= since {
			l.t.Fatalf("%s: open %v since %v", e.Raw, open, since)
		}
		delete(l.open, e.Speaker)
		l.turns++
	default:
		l.t.Fatalf("%s is neither start nor end", e.Raw)
	}
}

// Whatever a diarizer returns, the result obeys the contract.
func TestValidatorAgainstAHostileDiarizer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v validator
		rules := contract{t: t, open: map[string]float64{}}
		received := time.Duration(0)
		hostile := rapid.Custom(func(t *rapid.T) engine.Event {
			at := rapid.OneOf(
				rapid.Int64Range(int64(received)-2e8, int64(received)+2e8), // around now, to the nanosecond
				rapid.Int64Range(-1e9, 5e9),
				rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0}),
			).Draw(t, "at")
			return engine.Event{
				Kind:    engine.Kind(rapid.IntRange(0, 3).Draw(t, "kind")),
				At:      time.Duration(at),
				Speaker: rapid.IntRange(-1, 8).Draw(t, "speaker"),
			}
		})
		for range rapid.IntRange(0, 20).Draw(t, "chunks") {
			received += protocol.ChunkDuration
			in := rapid.SliceOfN(hostile, 0, 8).Draw(t, "in")
			for _, e := range v.validate(in, received, nil) {
				rules.check(e, received)
			}
		}
		for _, e := range v.finish(received, nil) {
			rules.check(e, received)
		}
		if len(rules.open) != 0 {
			t.Fatalf("never ended: %v", rules.open)
		}
	})
}

// Events that obey the rules pass unchanged.
func TestValidatorPassesValidEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v validator
		var want, got []protocol.Event
		frame, received := time.Duration(0), time.Duration(0)
		open := map[int]bool{}
		known := 0
		for range rapid.IntRange(1, 40).Draw(t, "chunks") {
			received += protocol.ChunkDuration
			var in []engine.Event
			for ; frame+20*time.Millisecond < received; frame += 20 * time.Millisecond {
				if rapid.IntRange(0, 3).Draw(t, "quiet") > 0 {
					continue
				}
				sp := rapid.IntRange(0, min(known, 7)).Draw(t, "speaker")
				known = max(known, sp+1)
				e := engine.Event{Kind: engine.Start, At: frame, Speaker: sp}
				typ := protocol.TypeSpeakerStart
				if open[sp] {
					e.Kind, typ = engine.End, protocol.TypeSpeakerEnd
				}
				open[sp] = !open[sp]
				in = append(in, e)
				want = append(want, protocol.NewSpeakerEvent(typ, frame.Seconds(), protocol.SpeakerLabel(sp)))
			}
			got = v.validate(in, received, got)
		}
		if v.corrections != (corrections{}) || len(got) != len(want) {
			t.Fatalf("%+v; %d of %d events", v.corrections, len(got), len(want))
		}
		for i := range want {
			if string(got[i].Raw) != string(want[i].Raw) {
				t.Fatalf("event %d: %s, want %s", i, got[i].Raw, want[i].Raw)
			}
		}
	})
}

func TestValidatorCases(t *testing.T) {
	const ms = time.Millisecond
	start := func(v int, at time.Duration) engine.Event {
		return engine.Event{Kind: engine.Start, At: at, Speaker: v}
	}
	end := func(v int, at time.Duration) engine.Event {
		return engine.Event{Kind: engine.End, At: at, Speaker: v}
	}
	for name, c := range map[string]struct {
		chunks      [][]engine.Event // one list for each 100 ms
		want        string
		corrections corrections
	}{
		"good":         {[][]engine.Event{{start(0, 0)}, {end(0, 150*ms)}}, "+00@0s -00@150ms", corrections{}},
		"left open":    {[][]engine.Event{{start(0, 0)}}, "+00@0s -00@100ms", corrections{}},
		"no length":    {[][]engine.Event{{start(0, 10*ms), end(0, 10*ms)}}, "+00@10ms -00@11ms", corrections{Moved: 1}},
		"rounds to 0":  {[][]engine.Event{{start(0, 10*ms+100), end(0, 10*ms+400_000)}}, "+00@10ms -00@11ms", corrections{Moved: 1}},
		"backwards":    {[][]engine.Event{{start(0, 50*ms), start(1, 20*ms)}, {end(1, 110*ms), end(0, 120*ms)}}, "+00@50ms +01@50ms -01@110ms -00@120ms", corrections{Moved: 1}},
		"future end":   {[][]engine.Event{{start(0, 50*ms), end(0, time.Hour)}}, "+00@50ms -00@100ms", corrections{Moved: 1}},
		"future start": {[][]engine.Event{{start(0, 150*ms)}, nil}, "+00@150ms -00@200ms", corrections{}},
		"at the edge":  {[][]engine.Event{{start(0, 100*ms)}}, "", corrections{Dropped: 1}},
		"last moment":  {[][]engine.Event{{start(0, 99*ms)}}, "+00@99ms -00@100ms", corrections{}},
		"edge, twice":  {[][]engine.Event{{start(0, 150*ms), start(0, 160*ms)}, nil}, "+00@150ms -00@200ms", corrections{Dropped: 1}},
		"edge, undone": {[][]engine.Event{{start(0, 100*ms), end(0, 100*ms)}, nil}, "", corrections{Dropped: 2}},
		"twice":        {[][]engine.Event{{start(0, 0), start(0, 1*ms), end(0, 2*ms), end(0, 3*ms)}}, "+00@0s -00@2ms", corrections{Dropped: 2}},
		"labels":       {[][]engine.Event{{start(5, 0), end(5, 10*ms), start(2, 20*ms), end(2, 30*ms), start(5, 40*ms), end(5, 50*ms)}}, "+00@0s -00@10ms +01@20ms -01@30ms +00@40ms -00@50ms", corrections{}},
		"nobody":       {[][]engine.Event{{start(-1, 0), start(8, 0), end(9, 0), {At: 1}}}, "", corrections{Dropped: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			var v validator
			var got []protocol.Event
			received := time.Duration(0)
			for _, in := range c.chunks {
				received += protocol.ChunkDuration
				got = v.validate(in, received, got)
			}
			got = v.finish(received, got)
			if text := protocoltest.Brief(got); text != c.want || v.corrections != c.corrections {
				t.Errorf("%s %+v, want %s %+v", text, v.corrections, c.want, c.corrections)
			}
		})
	}
}
