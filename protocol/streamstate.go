package protocol

import "encoding/json"

// TypeStreamState is a message for watchers only: whoever sends a stream never
// gets it.
const TypeStreamState = "stream_state"

// StreamState says how far a stream is that somebody else sends. All events of
// what had been decided by then came before it.
type StreamState struct {
	// Status is that of the stream: StatusCreated and so on.
	Status string `json:"status"`
	// Timestamp is how much audio the service has received, in seconds: the
	// stream's own clock.
	Timestamp float64 `json:"timestamp"`
}

type wireStreamState struct {
	Type string       `json:"type"`
	Data *StreamState `json:"data"`
}

// NewStreamStateEvent builds a message that carries a state.
func NewStreamStateEvent(s StreamState) Event {
	raw, err := json.Marshal(wireStreamState{TypeStreamState, &s})
	if err != nil { // a string and a finite number always marshal
		panic(err)
	}
	return Event{Type: TypeStreamState, Raw: raw}
}

// ParseStreamState reads the state that a message carries; false for a message
// that carries none, or one that cannot be.
func ParseStreamState(e Event) (StreamState, bool) {
	var w wireStreamState
	if e.Err != "" || e.Type != TypeStreamState || json.Unmarshal(e.Raw, &w) != nil || w.Data == nil ||
		!(w.Data.Timestamp >= 0 && w.Data.Timestamp <= MaxTimestamp) {
		return StreamState{}, false
	}
	return *w.Data, true
}
