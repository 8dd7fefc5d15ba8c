package faults

import (
	"encoding/json"
	"strings"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

// message is a message to the client.
type message struct {
	kind int
	raw  []byte
}

func text(e protocol.Event) message { return message{websocket.TextMessage, e.Raw} }

// streamFault is a fault on one stream.
type streamFault struct {
	Fault
	n      int                // events so far
	starts map[string]float64 // of open turns, by label
	held   []message
}

// apply returns what to send instead of a message. Error messages remain, and
// so do messages that another fault has made invalid.
func (f *streamFault) apply(m message) []message {
	e, err := protocol.ParseEvent(m.raw)
	isStart, isEnd := e.Type == protocol.TypeSpeakerStart, e.Type == protocol.TypeSpeakerEnd
	if err != nil || !isStart && !isEnd {
		return []message{m}
	}
	f.n++
	began, open := f.starts[e.Speaker]
	if isStart {
		f.starts[e.Speaker] = e.Timestamp
	}
	at := func(seconds float64) []message {
		return []message{text(e.Moved(max(0, seconds), e.Speaker))}
	}
	switch f.kind.name {
	case "drop-events":
		if f.n%f.value == 0 {
			return nil
		}
	case "duplicate-events":
		if f.n%f.value == 0 {
			return []message{m, m}
		}
	case "no-starts":
		if isStart {
			return nil
		}
	case "no-ends":
		if isEnd {
			return nil
		}
	case "end-before-start":
		if isEnd && open {
			return at(began - 0.5)
		}
	case "zero-length":
		if isEnd && open {
			return at(began)
		}
	case "future-events":
		return at(e.Timestamp + 3600)
	case "out-of-order":
		if f.held == nil {
			f.held = []message{m}
			return nil
		}
		return append([]message{m}, f.flush()...)
	case "unknown-speaker":
		if isStart {
			return []message{m, text(protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, e.Timestamp+0.001, protocol.SpeakerLabel(99)))}
		}
	case "unknown-type":
		return []message{{websocket.TextMessage, []byte(`{"type":"diarization_fault","data":{"note":"on purpose"}}`)}, m}
	case "extra-fields":
		raw, _ := json.Marshal(map[string]any{"type": e.Type, "sequence": f.n, "fault": map[string]string{"on": "purpose"}, // always marshals
			"data": map[string]any{"timestamp": e.Timestamp, "speaker": e.Speaker, "confidence": 0.5, "words": []string{"on", "purpose"}}})
		return []message{{websocket.TextMessage, raw}}
	case "broken-json":
		return []message{m, {websocket.TextMessage, m.raw[:len(m.raw)/2]}}
	case "binary-events":
		return []message{{websocket.BinaryMessage, m.raw}}
	case "hostile-labels":
		label := "\x1b[2J\x1b[31m" + e.Speaker + "\r\n\u202e\x07" + strings.Repeat("W", 2000)
		return []message{text(protocol.NewSpeakerEvent(e.Type, e.Timestamp, label))}
	}
	return []message{m}
}

// flush returns what a fault still holds at the end of the stream.
func (f *streamFault) flush() []message {
	held := f.held
	f.held = nil
	return held
}
