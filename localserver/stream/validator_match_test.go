package stream

import (
	"testing"
	"time"

	"hubbub/localserver/engine"
	"hubbub/protocol"
)

// A start after a withdrawn match says so; one of a speaker who never had a match
// says nothing.
func TestWithdrawnMatch(t *testing.T) {
	var v validator
	var in []engine.Event
	for i, match := range []string{"", "Sam", "", "Rosa"} {
		at := time.Duration(i) * time.Second
		in = append(in, engine.Event{Kind: engine.Start, At: at, Match: match}, engine.Event{Kind: engine.End, At: at + 500*time.Millisecond})
	}
	var got []string
	for _, e := range v.validate(in, time.Minute, nil) {
		if e.Type == protocol.TypeSpeakerStart {
			got = append(got, string(e.Raw))
		}
	}
	for i, want := range []string{`"SPEAKER_00"}}`, `"SPEAKER_00","match":"Sam"}}`, `"SPEAKER_00","match":null}}`, `"SPEAKER_00","match":"Rosa"}}`} {
		if len(got) != 4 || got[i][len(got[i])-len(want):] != want {
			t.Fatalf("start %d: %q", i, got)
		}
	}
}
