package conform

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

// All of these rules examine one conversation.
var eventRules = []Rule{
	{Name: "events/shape", Expected: "every message is a text frame with a JSON object; a start or end has data.timestamp (a number, not negative) and data.speaker (a string), an error has message", Section: "Events", step: conversation, check: checkEvents(func(all []message) string {
		if len(all) == 0 {
			skipped("there were no messages: see events/speech")
		}
		for _, m := range all {
			switch {
			case m.kind != websocket.TextMessage:
				differs("a binary frame arrived: %s", m.line())
			case m.Err != "":
				differs("%s: %s", m.line(), m.Err)
			case m.lacks() != "":
				differs("%s has no field %s", m.line(), m.lacks())
			}
		}
		return fmt.Sprintf("%d messages", len(all))
	})},
	{Name: "events/speech", Expected: "clear speech gives starts and ends of turns", Section: "Events", step: conversation, check: checkEvents(func(all []message) string {
		starts, ends := 0, 0
		for _, m := range all {
			switch m.Type {
			case protocol.TypeSpeakerStart:
				starts++
			case protocol.TypeSpeakerEnd:
				ends++
			}
		}
		if starts == 0 || ends == 0 {
			differs("%d starts and %d ends arrived", starts, ends)
		}
		return fmt.Sprintf("%d starts and %d ends", starts, ends)
	})},
	{Name: "events/types", Expected: "there are no other messages than starts, ends and errors", Section: "Events", step: conversation, check: checkEvents(func(all []message) string {
		for _, m := range all {
			switch m.Type {
			case protocol.TypeSpeakerStart, protocol.TypeSpeakerEnd, protocol.TypeError:
			default:
				if m.Err == "" {
					differs("%s", m.line())
				}
			}
		}
		return "no other types"
	})},
	{Name: "events/speakers", Expected: "there are at most 8 labels", Section: "Labels", step: conversation, check: checkTurns(func(turns []message) string {
		seen := map[string]bool{}
		for _, m := range turns {
			seen[m.Speaker] = true
		}
		if len(seen) > protocol.MaxSpeakers {
			differs("there were %d labels", len(seen))
		}
		return fmt.Sprintf("%d labels", len(seen))
	})},
	{Name: "events/milliseconds", Expected: "timestamps are rounded to 1 ms", Section: "Events", Chosen: true, step: conversation, check: checkTurns(func(turns []message) string {
		for _, m := range turns {
			if m.Timestamp != protocol.Round1ms(m.Timestamp) {
				differs("%s", m.line())
			}
		}
		return fmt.Sprintf("%d timestamps", len(turns))
	})},
	{Name: "events/received", Expected: "no timestamp is later than the audio received", Section: "Events", Chosen: true, step: conversation, check: checkTurns(func(turns []message) string {
		least := math.Inf(1)
		for _, m := range turns {
			behind := m.sent.Seconds() - m.Timestamp
			if behind < -0.0005 {
				differs("%s arrived when %.1f s of audio had been sent", m.line(), m.sent.Seconds())
			}
			least = min(least, behind)
		}
		return fmt.Sprintf("the earliest event arrived %.0f ms after its audio", least*1000)
	})},
	// This rule and those after it each test one property, whatever else is wrong: a
	// fault is reported by its rule, and not by those that follow from it.
	{Name: "events/pairs", Expected: "every start has exactly one end, also of turns that are open at end_of_stream", Section: "Events", Chosen: true, step: conversation, check: checkTurns(func(turns []message) string {
		starts, ends := map[string]int{}, map[string]int{}
		n := 0
		for _, m := range turns {
			if m.Type == protocol.TypeSpeakerStart {
				starts[m.Speaker]++
				n++
			} else if ends[m.Speaker]++; ends[m.Speaker] > starts[m.Speaker] {
				differs("%s ends a turn that did not start", m.line())
			}
		}
		for _, label := range slices.Sorted(maps.Keys(starts)) {
			if ends[label] < starts[label] {
				differs("%s started %d turns and ended %d", protocol.Label(label), starts[label], ends[label])
			}
		}
		return fmt.Sprintf("%d turns", n)
	})},
	{Name: "events/length", Expected: "the end of a turn is later than its start", Section: "Events", Chosen: true, step: conversation, check: checkTurns(func(turns []message) string {
		began := map[string]message{}
		shortest := math.Inf(1)
		for _, m := range turns {
			if m.Type == protocol.TypeSpeakerStart {
				began[m.Speaker] = m
				continue
			}
			s, ok := began[m.Speaker]
			if !ok {
				continue // see events/pairs
			}
			if m.Timestamp <= s.Timestamp {
				differs("a turn of %s starts at %g and ends at %g", protocol.Label(m.Speaker), s.Timestamp, m.Timestamp)
			}
			shortest = min(shortest, m.Timestamp-s.Timestamp)
		}
		if math.IsInf(shortest, 1) {
			skipped("no turn had both a start and an end: see events/pairs")
		}
		return fmt.Sprintf("the shortest turn has %.3f s", shortest)
	})},
	{Name: "events/order", Expected: "events leave in order of their timestamps", Section: "Events", Chosen: true, step: conversation, check: checkTurns(func(turns []message) string {
		for i, m := range turns[1:] {
			if m.Timestamp < turns[i].Timestamp {
				differs("%s arrived after %s", m.line(), turns[i].line())
			}
		}
		return fmt.Sprintf("%g to %g", turns[0].Timestamp, turns[len(turns)-1].Timestamp)
	})},
	{Name: "events/one-turn", Expected: "one label never has two open turns", Section: "Events", Chosen: true, step: conversation, check: checkTurns(func(turns []message) string {
		open := map[string]bool{}
		for _, m := range turns {
			start := m.Type == protocol.TypeSpeakerStart
			if start && open[m.Speaker] {
				differs("%s starts a turn inside another one of the same label", m.line())
			}
			open[m.Speaker] = start
		}
		return fmt.Sprintf("%d labels", len(open))
	})},
	{Name: "events/labels", Expected: "labels are SPEAKER_00, SPEAKER_01, ... in order of first speech", Section: "Labels", Chosen: true, step: conversation, check: checkTurns(func(turns []message) string {
		seen := map[string]bool{}
		var names []string
		for _, m := range turns {
			if m.Type != protocol.TypeSpeakerStart || seen[m.Speaker] {
				continue
			}
			if want := protocol.SpeakerLabel(len(seen)); m.Speaker != want {
				differs("speaker number %d is %s, not %s", len(seen)+1, protocol.Label(m.Speaker), want)
			}
			seen[m.Speaker] = true
			names = append(names, m.Speaker)
		}
		if len(names) == 0 {
			skipped("there was no start: see events/speech")
		}
		return strings.Join(names, ", ")
	})},
}

// checkEvents is the check of a rule about the events of the conversation.
func checkEvents(check func([]message) string) func(*prober) string {
	return func(p *prober) string { return check(conversation.of(p).messages) }
}

// checkTurns is the check of a rule about the starts and ends that could be parsed;
// without any the rule is skipped.
func checkTurns(check func(turns []message) string) func(*prober) string {
	return checkEvents(func(all []message) string {
		turns := turnMessages(all)
		if len(turns) == 0 {
			skipped("there were no events: see events/speech")
		}
		return check(turns)
	})
}

// turnMessages are the starts and ends that could be parsed.
func turnMessages(all []message) []message {
	return slices.DeleteFunc(slices.Clone(all), func(m message) bool { return !m.IsTurn() })
}

// lacks is a field that a message has under a name in other letters only, which hubbub takes as
// well and most clients do not; "" = none.
func (m message) lacks() string {
	var fields, data map[string]json.RawMessage
	_ = json.Unmarshal(m.Raw, &fields) // it was parsed
	_ = json.Unmarshal(fields["data"], &data)
	switch {
	case fields["type"] == nil:
		return "type"
	case m.Type == protocol.TypeError && fields["message"] == nil:
		return "message"
	case m.IsTurn() && data["timestamp"] == nil:
		return "data.timestamp"
	case m.IsTurn() && data["speaker"] == nil:
		return "data.speaker"
	}
	return ""
}

// line is the message as one line of text.
func (m message) line() string { return protocol.Clean(string(m.Raw), 200) }
