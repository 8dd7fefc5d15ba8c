package conform

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

// All of these look at one conversation.
var eventRules = []Rule{
	{Name: "events/shape", Expected: "every message is a text frame with a JSON object; a start or end has data.timestamp (a number, not negative) and data.speaker (a string), an error has message", Source: specification + " 6", check: judgeEvents(shape)},
	{Name: "events/speech", Expected: "clear speech gives starts and ends of turns", Source: specification + " 1, 6", check: judgeEvents(someTurns)},
	{Name: "events/types", Expected: "there are no messages but starts, ends and errors", Source: specification + " 6", check: judgeEvents(knownTypes)},
	{Name: "events/speakers", Expected: "there are at most 8 labels", Source: specification + " 6, rule 2; 8", check: judgeEvents(fewSpeakers)},
	{Name: "events/milliseconds", Expected: "timestamps are rounded to 1 ms", Source: contract + " 2, events", check: judgeEvents(milliseconds)},
	{Name: "events/received", Expected: "no timestamp is later than the audio received", Source: contract + " 2, events", check: judgeEvents(received)},
	{Name: "events/pairs", Expected: "every start has exactly one end, also of turns that are open at end_of_stream", Source: contract + " 2, events and end_of_stream", check: judgeEvents(pairs)},
	{Name: "events/length", Expected: "the end of a turn is later than its start", Source: contract + " 2, events", check: judgeEvents(lengths)},
	{Name: "events/order", Expected: "events leave in order of their timestamps", Source: contract + " 2, events", check: judgeEvents(order)},
	{Name: "events/one-turn", Expected: "one label never has two open turns", Source: contract + " 2, events", check: judgeEvents(oneTurn)},
	{Name: "events/labels", Expected: "labels are SPEAKER_00, SPEAKER_01, ... in order of first speech", Source: contract + " 2, labels", check: judgeEvents(labels)},
}

// judgeEvents is the check of a rule that looks at the conversation's events.
func judgeEvents(judge func([]heard) (string, error)) func(context.Context, *play) (string, error) {
	return func(ctx context.Context, p *play) (string, error) {
		t, err := p.conversation(ctx)
		if err != nil {
			return "", err
		}
		return judge(t.heard)
	}
}

// turns are the starts and ends that could be read; without any there is
// nothing to judge.
func turns(all []heard) ([]heard, error) {
	var out []heard
	for _, h := range all {
		if h.Err == "" && (h.Type == protocol.TypeSpeakerStart || h.Type == protocol.TypeSpeakerEnd) {
			out = append(out, h)
		}
	}
	if len(out) == 0 {
		return nil, skipped("there were no events to look at: see events/speech")
	}
	return out, nil
}

// line is a message for people.
func (h heard) line() string { return protocol.Clean(string(h.Raw), 200) }

func shape(all []heard) (string, error) {
	if len(all) == 0 {
		return "", skipped("there were no messages to look at: see events/speech")
	}
	for _, h := range all {
		switch {
		case h.kind != websocket.TextMessage:
			return "", differs("a binary frame came: %s", h.line())
		case h.Err != "":
			return "", differs("%s: %s", h.line(), h.Err)
		}
	}
	return fmt.Sprintf("%d messages", len(all)), nil
}

func someTurns(all []heard) (string, error) {
	starts, ends := 0, 0
	for _, h := range all {
		switch h.Type {
		case protocol.TypeSpeakerStart:
			starts++
		case protocol.TypeSpeakerEnd:
			ends++
		}
	}
	if starts == 0 || ends == 0 {
		return "", differs("%d starts and %d ends came", starts, ends)
	}
	return fmt.Sprintf("%d starts and %d ends", starts, ends), nil
}

func knownTypes(all []heard) (string, error) {
	for _, h := range all {
		switch h.Type {
		case protocol.TypeSpeakerStart, protocol.TypeSpeakerEnd, protocol.TypeError:
		default:
			if h.Err == "" {
				return "", differs("%s", h.line())
			}
		}
	}
	return "no others came", nil
}

func fewSpeakers(all []heard) (string, error) {
	list, err := turns(all)
	if err != nil {
		return "", err
	}
	seen := map[string]bool{}
	for _, h := range list {
		seen[h.Speaker] = true
	}
	if len(seen) > protocol.MaxSpeakers {
		return "", differs("there were %d labels", len(seen))
	}
	return fmt.Sprintf("%d labels", len(seen)), nil
}

func milliseconds(all []heard) (string, error) {
	list, err := turns(all)
	if err != nil {
		return "", err
	}
	for _, h := range list {
		var message struct {
			Data struct {
				Timestamp json.Number `json:"timestamp"`
			} `json:"data"`
		}
		if json.Unmarshal(h.Raw, &message) != nil {
			continue // it is no number: see events/shape
		}
		_, digits, _ := strings.Cut(strings.TrimRight(message.Data.Timestamp.String(), "0"), ".")
		if len(digits) > 3 || h.Timestamp != protocol.Round1ms(h.Timestamp) {
			return "", differs("%s", h.line())
		}
	}
	return fmt.Sprintf("%d timestamps", len(list)), nil
}

func received(all []heard) (string, error) {
	list, err := turns(all)
	if err != nil {
		return "", err
	}
	least := math.Inf(1)
	for _, h := range list {
		behind := h.sent.Seconds() - h.Timestamp
		if behind < -0.0005 {
			return "", differs("%s came when %.1f s of audio had been sent", h.line(), h.sent.Seconds())
		}
		least = min(least, behind)
	}
	return fmt.Sprintf("the earliest event came %.0f ms behind its audio", least*1000), nil
}

// pairs and the rules behind it each look at one thing, whatever else is
// wrong: who builds a service sees what differs, and not what follows from it.
func pairs(all []heard) (string, error) {
	list, err := turns(all)
	if err != nil {
		return "", err
	}
	starts, ends := map[string]int{}, map[string]int{}
	n := 0
	for _, h := range list {
		if h.Type == protocol.TypeSpeakerStart {
			starts[h.Speaker]++
			n++
		} else if ends[h.Speaker]++; ends[h.Speaker] > starts[h.Speaker] {
			return "", differs("%s ends a turn that did not start", h.line())
		}
	}
	for label, k := range starts {
		if ends[label] < k {
			return "", differs("%s started %d turns and ended %d", protocol.Label(label), k, ends[label])
		}
	}
	return fmt.Sprintf("%d turns", n), nil
}

func lengths(all []heard) (string, error) {
	list, err := turns(all)
	if err != nil {
		return "", err
	}
	began := map[string]heard{}
	shortest := math.Inf(1)
	for _, h := range list {
		if h.Type == protocol.TypeSpeakerStart {
			began[h.Speaker] = h
			continue
		}
		s, ok := began[h.Speaker]
		if !ok {
			continue // see events/pairs
		}
		if h.Timestamp <= s.Timestamp {
			return "", differs("a turn of %s starts at %g and ends at %g", protocol.Label(h.Speaker), s.Timestamp, h.Timestamp)
		}
		shortest = min(shortest, h.Timestamp-s.Timestamp)
	}
	if math.IsInf(shortest, 1) {
		return "", skipped("no turn had both a start and an end: see events/pairs")
	}
	return fmt.Sprintf("the shortest turn has %.3f s", shortest), nil
}

func order(all []heard) (string, error) {
	list, err := turns(all)
	if err != nil {
		return "", err
	}
	for i, h := range list[1:] {
		if h.Timestamp < list[i].Timestamp {
			return "", differs("%s came after %s", h.line(), list[i].line())
		}
	}
	return fmt.Sprintf("%g to %g", list[0].Timestamp, list[len(list)-1].Timestamp), nil
}

func oneTurn(all []heard) (string, error) {
	list, err := turns(all)
	if err != nil {
		return "", err
	}
	open := map[string]bool{}
	for _, h := range list {
		start := h.Type == protocol.TypeSpeakerStart
		if start && open[h.Speaker] {
			return "", differs("%s starts a turn inside another one of the same label", h.line())
		}
		open[h.Speaker] = start
	}
	return fmt.Sprintf("%d labels", len(open)), nil
}

func labels(all []heard) (string, error) {
	list, err := turns(all)
	if err != nil {
		return "", err
	}
	seen := map[string]bool{}
	var names []string
	for _, h := range list {
		if h.Type != protocol.TypeSpeakerStart || seen[h.Speaker] {
			continue
		}
		if want := protocol.SpeakerLabel(len(seen)); h.Speaker != want {
			return "", differs("speaker number %d to speak is %s, not %s", len(seen)+1, protocol.Label(h.Speaker), want)
		}
		seen[h.Speaker] = true
		names = append(names, h.Speaker)
	}
	if len(names) == 0 {
		return "", skipped("there was no start to look at: see events/speech")
	}
	return strings.Join(names, ", "), nil
}
