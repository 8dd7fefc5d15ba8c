package trace

import (
	"testing"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// The health of a stream: what was received, how late, and a verdict.
func TestHealth(t *testing.T) {
	begin := time.Unix(1_000_000, 0)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	const s = time.Second
	open := Record{At: begin, Kind: KindHandshake, Dir: Incoming, Stream: 1, Code: 101}
	ping := func(t float64) Record { return Record{At: at(t), Kind: KindPing, Dir: Outgoing, Stream: 1} }
	pong := func(t float64, took time.Duration) Record {
		return Record{At: at(t), Kind: KindPong, Dir: Incoming, Stream: 1, Took: took}
	}
	event := func(t float64, lag time.Duration) Record {
		return Record{At: at(t), Kind: KindEvent, Dir: Incoming, Stream: 1, Type: protocol.TypeSpeakerStart, Lag: lag}
	}
	for _, c := range []struct {
		name    string
		records []Record
		latency time.Duration
		now     float64
		want    Health
	}{
		{"just opened", []Record{open, ping(0)}, 0, 0.5, Health{Reply: -1, Lag: -1, MaxLag: -1}},
		{"well", []Record{open, ping(2), pong(2.25, s/4), event(3, s)}, 0, 4, Health{Reply: s, Unconfirmed: s / 4, Lag: s, MaxLag: s}},
		{"a ping on its way", []Record{open, ping(2), pong(2.25, s/4), ping(4)}, 0, 4.5, Health{Reply: 9 * s / 4, Unconfirmed: s / 4, Lag: -1, MaxLag: -1}},
		{"silent from the start", []Record{open, ping(0), ping(2)}, 0, 5,
			Health{Reply: -1, Unconfirmed: 5 * s, Lag: -1, MaxLag: -1, Problem: "nothing received for 5 s", Cause: CauseSilent}},
		{"silent later", []Record{open, ping(2), pong(2.5, s/2), event(3, s), ping(4), ping(6)}, 0, 8,
			Health{Reply: 5 * s, Unconfirmed: 6 * s, Lag: s, MaxLag: s, Problem: "nothing received for 5 s", Cause: CauseSilent}},
		{"slow", []Record{open, ping(2), ping(4), ping(6), pong(8, 6*s), event(8, 7*s)}, 0, 8.5,
			Health{Reply: s / 2, Unconfirmed: 6 * s, Lag: 7 * s, MaxLag: 7 * s, Problem: "audio arrives 6 s late", Cause: CauseSlow}},
		{"late", []Record{open, event(8, 9*s), event(8, 7*s), ping(8.498), pong(8.5, s/500)}, 0, 10,
			Health{Reply: 3 * s / 2, Unconfirmed: s / 500, Lag: 7 * s, MaxLag: 9 * s, Problem: "events arrive 7 s late", Cause: CauseLate}},
		{"pings are not answered", []Record{open, ping(0), ping(2), event(3, s), ping(4)}, 0, 5,
			Health{Reply: 2 * s, Lag: s, MaxLag: s}},
		{"late, but as late as it is meant to be", []Record{open, event(8, 7*s), ping(8.498), pong(8.5, s/500)}, 5 * s, 9,
			Health{Reply: s / 2, Unconfirmed: s / 500, Lag: 7 * s, MaxLag: 7 * s}},
	} {
		l := NewLog()
		for _, r := range c.records {
			l.Record(r)
		}
		if got := l.Snapshot().Status.Health(at(c.now), c.latency); got != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.name, got, c.want)
		}
	}
	l := NewLog()
	testkit.Equal(t, l.Snapshot().Status.Health(begin, 0), Health{}, "without a stream")
	l.Record(open)
	l.Record(Record{At: at(1), Kind: KindEnd, Stream: 1})
	testkit.Equal(t, l.Snapshot().Status.Health(begin, 0), Health{}, "a stream that is over has a health")
}
