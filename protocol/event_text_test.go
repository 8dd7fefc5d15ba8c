package protocol

import "testing"

func TestTextEvents(t *testing.T) {
	turn := Turn{Speaker: "SPEAKER_00", Start: 1.2344, End: 3, Text: "one\ntwo"}
	e, err := ParseEvent(NewTextEvent(turn).Raw)
	if want := (Turn{Speaker: "SPEAKER_00", Start: 1.234, End: 3, Text: "one two"}); err != nil || e.Type != TypeText || e.Transcript != want {
		t.Errorf("%+v, %v, want %+v", e.Transcript, err, want)
	}
	for _, raw := range []string{
		`{"type":"text"}`, `{"type":"text","data":{"speaker":"A","start":1,"end":2}}`, `{"type":"text","data":{"speaker":"A","start":1,"text":"x"}}`,
		`{"type":"text","data":{"speaker":"A","end":2,"text":"x"}}`, `{"type":"text","data":{"start":1,"end":2,"text":"x"}}`, `{"type":"text","data":{"speaker":"A","start":2,"end":2,"text":"x"}}`,
		`{"type":"text","data":{"speaker":"A","start":-1,"end":2,"text":"x"}}`, `{"type":"text","data":{"speaker":"A","start":1,"end":1e99,"text":"x"}}`,
	} {
		if e, err := ParseEvent([]byte(raw)); err == nil || e.Err == "" {
			t.Errorf("%s is %+v", raw, e)
		}
	}
	line := NewTimeline()
	line.Apply(NewSpeakerEvent(TypeSpeakerStart, 1.234, "SPEAKER_00"))
	line.Apply(NewSpeakerEvent(TypeSpeakerEnd, 3, "SPEAKER_00"))
	line.Apply(e)
	if got := line.Snapshot(); got.Turns()[0].Text != "one two" || got.Counts.Unknown != 0 || got.Counts.Degenerate != 0 {
		t.Errorf("%+v", got)
	}
}
