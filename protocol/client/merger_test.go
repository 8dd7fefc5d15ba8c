package client

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// merged runs a script: "start AT LABEL", "start AT LABEL MATCH" and "end AT LABEL" are
// events of the present stream on the capture's clock (the match "null" is withdrawn), "text AT LABEL END" what was said in
// a turn, "lost AT" its loss when so much was decided, "known AT" and "unknown AT" a new stream from there, "decided AT"
// the time that passes, "over" the end. What comes out is returned in the same form. Each text is that of a turn.
func merged(t *testing.T, script string) string {
	t.Helper()
	p, timeline, texts := newEventMerger(), protocol.NewTimeline(), 0
	var out []string
	take := func(events []protocol.Event) {
		for _, e := range events {
			timeline.Apply(e)
			if e.Type == protocol.TypeText {
				texts++
				testkit.Equal(t, e.Transcript.Text, "hello", script)
				out = append(out, fmt.Sprintf("text %g %s %g", e.Transcript.Start, e.Transcript.Speaker, e.Transcript.End))
				continue
			}
			word := map[string]string{protocol.TypeSpeakerStart: "start", protocol.TypeSpeakerEnd: "end"}[e.Type]
			match := e.Match
			if e.Unmatched {
				match = "null"
			}
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %g %s %s", word, e.Timestamp, e.Speaker, match)))
			if p.streams > 1 {
				if read, err := protocol.ParseEvent(e.Raw); err != nil || read.Timestamp != e.Timestamp || read.Speaker != e.Speaker || read.Match != e.Match || read.Unmatched != e.Unmatched {
					t.Errorf("%s reads otherwise in its raw form", e.Raw)
				}
			}
		}
	}
	for line := range strings.SplitSeq(script, ";") {
		var word, label, match string
		var at float64
		_, _ = fmt.Sscan(line, &word, &at, &label, &match)
		switch word {
		case "start":
			if match != "" {
				take(p.add(protocol.NewMatchEvent(at, label, strings.TrimPrefix(match, "null"))))
				break
			}
			take(p.add(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, at, label)))
		case "end":
			take(p.add(protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, at, label)))
		case "text":
			end := testkit.Must(strconv.ParseFloat(match, 64))(t)
			take(p.add(protocol.NewTextEvent(protocol.Turn{Speaker: label, Start: at, End: end, Text: "hello"})))
		case "lost":
			_, ends := p.cutAt(at)
			take(ends)
		case "known", "unknown":
			take(p.nextStream(at, word == "known"))
		case "decided":
			take(p.advance(at))
		case "over":
			take(p.abandon())
		default:
			t.Fatalf("%q", line)
		}
	}
	testkit.Equal(t, timeline.Snapshot().Texts, texts, script, "turns with a text")
	return strings.Join(out, "; ")
}

func TestMergerJoinsStreams(t *testing.T) {
	for name, c := range map[string][2]string{
		"one stream": {"start 1 A; end 2 A", "start 1 A; end 2 A"},
		"open turns end where it was lost": {
			"start 1 A; start 1.5 B; end 2 B; lost 3; known 3; start 3.5 B; end 4 B",
			"start 1 A; start 1.5 B; end 2 B; end 3 A; start 3.5 B; end 4 B"},
		"decided is at least the newest event": {"start 1 A; start 5 B; end 6 B; lost 3", "start 1 A; start 5 B; end 6 B; end 6 A"},
		"a turn across the cut begins there": {
			"start 1 A; lost 3; known 3; start 2.4 A; end 4 A", "start 1 A; end 3 A; start 3 A; end 4 A"},
		"it begins there also when nothing follows": {
			"start 1 A; lost 3; known 3; start 2.4 A; decided 2.9; decided 3.1", "start 1 A; end 3 A; start 3 A"},
		"what was before the cut is known already": {
			"start 1 A; end 2 A; lost 3; known 3; start 2 A; end 2.5 A; start 2.6 B; end 3 B; start 4 C", "start 1 A; end 2 A; start 4 C"},
		"a turn that had just begun goes on": {
			"start 1 A; end 2 A; start 2 B; lost 1; known 2; start 1.8 B; end 4 B", "start 1 A; end 2 A; start 2 B; end 4 B"},
		"or a little later": {
			"start 2 B; lost 1; known 2; start 2.1 B; end 4 B", "start 2 B; end 4 B"},
		"or is over after all": {
			"start 2 B; lost 1; known 2; start 3 C", "start 2 B; end 2.001 B; start 3 C"},
		"or over with the session": {"start 2 B; lost 1; over", "start 2 B; end 2.001 B"},
		"or cut off by a gap":      {"start 2 B; lost 1; known 7; start 7 B", "start 2 B; end 2.001 B; start 7 B"},
		"or nobody knows whose it was": {
			"start 2 B; lost 1; unknown 2; start 2.1 B", "start 2 B; end 2.001 B; start 2.1 B#2"},
		"labels of a stream that knew nobody": {
			"start 1 A; end 2 A; lost 3; unknown 3; start 4 A; start 5 B; end 6 A; end 6.1 B; lost 7; known 7; start 8 A; end 9 A; lost 9; unknown 9; start 10 A; end 11 A; start 12 A#2",
			"start 1 A; end 2 A; start 4 A#2; start 5 B; end 6 A#2; end 6.1 B; start 8 A#2; end 9 A#2; start 10 A#3; end 11 A#3; start 12 A#2#3"},
		"lost twice": {
			"start 1 A; lost 3; known 3; start 2.9 A; lost 3; known 3; start 2.5 A; end 5 A",
			"start 1 A; end 3 A; start 3 A; end 5 A"},
		"lost again before an event beyond the cut": {
			"start 1 A; lost 3; known 3; start 1 A; lost 5; known 5; start 3.5 A; end 6 A",
			"start 1 A; end 3 A; start 3 A; end 5 A; start 5 A; end 6 A"},
		"the end of a turn that does not go on decides nothing": { // it is a millisecond beyond the cut, and the newest event
			"start 1 A; start 3 B; lost 3; unknown 3; start 1.5 A; decided 3.001; end 2.9 A; start 3 B; decided 3.1",
			"start 1 A; start 3 B; end 3 A; end 3.001 B; start 3.001 B#2"},
		"lost before anything": {"lost 0; known 0; start 1 A; end 2 A", "start 1 A; end 2 A"},
		// A text has the times of its turn in the session, also where that begins elsewhere than in the new stream.
		"text of a turn that was clipped": {
			"start 1 A; lost 3; known 3; start 2.4 A; end 4 A; text 2.4 A 4", "start 1 A; end 3 A; start 3 A; end 4 A; text 3 A 4"},
		"text of a turn that was continued": {
			"start 2.9 A; lost 3; known 3; start 3.1 A; end 4 A; text 3.1 A 4", "start 2.9 A; end 4 A; text 2.9 A 4"},
		"text of one with another match": {
			"start 2.9 A Rosa; lost 3; known 3; start 2.8 A Sam; end 4 A; text 2.8 A 4", "start 2.9 A Rosa; end 4 A; text 2.9 A 4"},
		"text of a turn after the cut": {"lost 3; known 3; start 3.4 A; end 4 A; text 3.4 A 4", "start 3.4 A; end 4 A; text 3.4 A 4"},
		// A turn that had just begun when the stream was lost keeps its match, whatever that of the start is with which the new
		// stream continues it. The next turn has the new one.
		"another person":    {"start 2 A Rosa; lost 2; known 2; start 1.8 A Sam; end 4 A; start 5 A Sam", "start 2 A Rosa; end 4 A; start 5 A Sam"},
		"nobody any more":   {"start 2 A Rosa; lost 2; known 2; start 1.8 A null; end 4 A; start 5 A null", "start 2 A Rosa; end 4 A; start 5 A null"},
		"recognised now":    {"start 2 A; lost 2; known 2; start 1.8 A Sam; end 4 A; start 5 A Sam", "start 2 A; end 4 A; start 5 A Sam"},
		"the same":          {"start 2 A Sam; lost 2; known 2; start 1.8 A Sam; end 4 A", "start 2 A Sam; end 4 A"},
		"a later start":     {"start 2 A Rosa; lost 2; known 2; start 2.1 A Sam; end 4 A", "start 2 A Rosa; end 4 A"},
		"a turn that ended": {"start 1 A Rosa; lost 2; known 2; start 1.9 A Sam; end 4 A", "start 1 A Rosa; end 2 A; start 2 A Sam; end 4 A"},
		// One that a new stream continues over the cut has the match of its newest start before the cut, also one that was withdrawn.
		"a match before the cut": {"start 1 A Rosa; lost 2; known 2; start 1 A Rosa; start 1.5 A Sam; end 4 A", "start 1 A Rosa; end 2 A; start 2 A Sam; end 4 A"},
		"one withdrawn there":    {"start 1 A Rosa; lost 2; known 2; start 1 A Rosa; start 1.5 A null; end 4 A", "start 1 A Rosa; end 2 A; start 2 A null; end 4 A"},
	} {
		if got := merged(t, c[0]); got != c[1] {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c[1])
		}
	}
}

// A service gone mad fills no memory.
func TestMergerBoundsLabels(t *testing.T) {
	p := newEventMerger()
	flood := func(label string) {
		for i := range 10 * protocol.MaxLabels {
			p.add(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, float64(i+1), fmt.Sprint(label, i)))
		}
	}
	if flood("K"); len(p.used) > 4*protocol.MaxLabels {
		t.Errorf("%d labels of the first stream are kept", len(p.used))
	}
	p = newEventMerger()
	p.cutAt(0)
	p.nextStream(0, false)
	flood("L")
	p.cutAt(1000)
	p.nextStream(1000, true)
	for i := range 10 * protocol.MaxLabels {
		p.add(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 999, fmt.Sprint("M", i)))
	}
	if len(p.early) > protocol.MaxLabels {
		t.Errorf("%d starts before the cut are kept", len(p.early))
	}
	if len(p.used) > 4*protocol.MaxLabels || len(p.open) > protocol.MaxLabels || len(p.newLabels) > 4*protocol.MaxLabels {
		t.Errorf("%d labels, %d open, %d fresh are kept", len(p.used), len(p.open), len(p.newLabels))
	}
}

// Acknowledged audio decides nothing while events about it wait: they came before the
// acknowledgement, and a turn that ends before the cut must not begin there.
func TestQueuedEventsComeBeforeAcknowledgedAudio(t *testing.T) {
	for range 20 { // which of two that are ready select takes is random
		synctest.Test(t, func(t *testing.T) {
			c := &Client{}
			s := &Stream{sendingState: sendingState{acked: 100}, events: make(chan protocol.Event, 4)}
			r := &ResilientStream{streamSession: c.newStreamSession(false, time.Minute, ""), buffer: newSendBuffer(true, nil)}
			r.merger.cutAt(2)
			r.merger.nextStream(2, true)
			s.events <- protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 1.2, "A")
			s.events <- protocol.Event{Type: protocol.TypeError}
			s.events <- protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 1.8, "A")
			go func() {
				r.forwardEvents(s)
				close(r.updates)
			}()
			time.Sleep(2 * decidedEvery) // nobody receives the error
			close(s.events)
			var events []protocol.Event
			for u := range r.Updates() {
				events = append(events, u.Event)
			}
			if len(events) != 1 || events[0].Type != protocol.TypeError {
				t.Fatalf("%v", events)
			}
		})
	}
}
