package trace

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// Programs read the records: the documentation names every field.
func TestFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	page := testkit.Must(os.ReadFile("../../docs/troubleshooting.md"))(t)
	for _, record := range []any{recordJSON{}, socketJSON{}} {
		for f := range reflect.TypeOf(record).Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/troubleshooting.md does not name %s", name)
			}
		}
	}
}

// TestRecordsAsJSON: what does not apply to a kind, or is not known, is left out.
func TestRecordsAsJSON(t *testing.T) {
	begin := `{"n":0,"at":"2001-09-09T01:46:40.000000Z",`
	for want, r := range map[string]Record{
		`"dir":"out","kind":"chunk","bytes":6400,"took_ms":0.3,"chunk":5,"gap_ms":100,"ahead_ms":-1200,"dropped":3,"queue":0,` +
			`"socket":{"unacked_bytes":1,"unsent_bytes":2,"unread_bytes":3,"rtt_ms":4,"rttvar_ms":5,"retransmits":6,"lost":7,"window":8}}`: {
			Dir: Outgoing, Kind: KindChunk, Size: 6400, Took: 300 * time.Microsecond, Chunk: 5, Gap: 100 * time.Millisecond, Ahead: -1200 * time.Millisecond, Dropped: 3,
			Socket: &SocketState{Unacked: 1, Unsent: 2, Unread: 3, RTT: 4 * time.Millisecond, RTTVar: 5 * time.Millisecond, Retransmits: 6, Lost: 7, Window: 8}},
		`"dir":"out","kind":"chunk","bytes":0,"chunk":0,"ahead_ms":0}`:                                    {Dir: Outgoing, Kind: KindChunk, Waiting: -1},
		`"dir":"in","kind":"event","type":"diarization_speaker_end","bytes":0,"lag_ms":0}`:                {Dir: Incoming, Kind: KindEvent, Type: protocol.TypeSpeakerEnd},
		`"dir":"in","kind":"event","type":"diarization_speaker_end","bytes":0}`:                           {Dir: Incoming, Kind: KindEvent, Type: protocol.TypeSpeakerEnd, Lag: -1},
		`"dir":"in","kind":"event","type":"another","bytes":0}`:                                           {Dir: Incoming, Kind: KindEvent, Type: "another"},
		`"dir":"in","kind":"close","bytes":0,"code":1000,"meaning":"` + protocol.CodeMeaning(1000) + `"}`: {Dir: Incoming, Kind: KindClose, Code: 1000},
		`"kind":"end","type":"lost","fault":true}`:                                                        {Kind: KindEnd, Type: "lost", Fault: true},
		`"kind":"end","code":1008,"meaning":"` + protocol.CodeMeaning(1008) + `"}`:                        {Kind: KindEnd, Code: 1008},
	} {
		r.At = time.Unix(1_000_000_000, 0)
		if got := r.Line(); got != begin+want {
			t.Errorf("got  %s\nwant %s", got, begin+want)
		}
	}
}
