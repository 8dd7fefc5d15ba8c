package client

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hubbub/protocol"
)

// TestMergerKeepsTheConversation loses the streams of a conversation at any points. What is
// merged is in order, every start has one end, and each speaker, under all labels, has talked
// when they did, except in the gaps. Times are ticks of 50 ms.
func TestMergerKeepsTheConversation(t *testing.T) {
	const length = 200
	seconds := func(tick int) float64 { return protocol.Round1ms(float64(tick) / 20) }
	rapid.Check(t, func(t *rapid.T) {
		draw := func(from, to int, what string) int { return rapid.IntRange(from, max(from, to)).Draw(t, what) }
		var talk [3][length]bool
		for who := range talk {
			for at := draw(0, 30, "pause"); at < length; at += draw(1, 30, "pause") {
				for end := at + draw(4, 40, "turn"); at < min(end, length); at++ {
					talk[who][at] = true
				}
			}
		}
		m, timeline := newEventMerger(), protocol.NewTimeline()
		last, open, gap := 0.0, map[string]bool{}, [length]bool{}
		take := func(events []protocol.Event) {
			for _, e := range events {
				starts := e.Type == protocol.TypeSpeakerStart
				if e.Timestamp < last || open[e.Speaker] == starts {
					t.Fatalf("%s after %g, open %v", e.Raw, last, open)
				}
				last, open[e.Speaker] = e.Timestamp, starts
				timeline.Apply(e)
			}
		}
		// stream sends the events from a tick to another, and says at random what is decided.
		stream := func(from, to int) {
			talks := [len(talk)]bool{}
			for tick := from; tick <= to; tick++ {
				if rapid.Bool().Draw(t, "tick") {
					take(m.advance(max(seconds(tick)-0.001, m.last, m.cut)))
				}
				for who := range talk {
					if now := tick < length && talk[who][tick]; now != talks[who] {
						talks[who] = now
						typ := map[bool]string{true: protocol.TypeSpeakerStart, false: protocol.TypeSpeakerEnd}[now]
						take(m.add(protocol.NewSpeakerEvent(typ, seconds(tick), protocol.SpeakerLabel(who))))
					}
				}
			}
		}
		from := 0
		for range draw(0, 5, "losses") {
			to := draw(from, length-1, "loss")
			stream(from, to)
			cut, ends := m.cutAt(max(seconds(draw(0, to, "decided")), m.last, m.cut))
			take(ends)
			begin := int(cut * 20)
			if rapid.IntRange(0, 3).Draw(t, "gap") == 0 {
				for until := draw(begin, length-1, "gap"); begin < until; begin++ {
					gap[begin], cut = true, seconds(begin+1)
				}
			}
			take(m.nextStream(cut, rapid.Bool().Draw(t, "resumed")))
			from = draw(max(0, begin-40), begin, "from")
		}
		stream(from, length)
		take(m.abandon())

		var merged [len(talk)][length]bool
		for _, turn := range timeline.Snapshot().Turns() {
			label, _, _ := strings.Cut(turn.Speaker, "#")
			who := slices.IndexFunc([]string{"SPEAKER_00", "SPEAKER_01", "SPEAKER_02"}, func(s string) bool { return s == label })
			for tick := int(turn.Start*20 + 0.5); tick < int(turn.End*20+0.5); tick++ {
				merged[who][tick] = true
			}
		}
		for who := range talk {
			for tick := range length {
				if near := gap[tick] || gap[max(tick-1, 0)]; merged[who][tick] != talk[who][tick] && !near {
					t.Fatalf("speaker %d at %g s: %v", who, seconds(tick), merged[who][tick])
				}
			}
		}
		if n := timeline.Snapshot().Counts.Degenerate; n > 0 || last > seconds(length) {
			t.Fatalf("%d events are no valid steps, the last one at %g s", n, last)
		}
	})
}
