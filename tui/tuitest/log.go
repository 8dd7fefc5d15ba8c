package tuitest

import (
	"encoding/json"
	"fmt"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/trace"
)

// Log is 42 s of a stream that stutters once: its service has something
// to say that no terminal should see. With end, the service closes it.
func Log(end bool) *trace.Log {
	l := trace.NewLog()
	waiting := 0
	at := time.Unix(1_000_000-42, 0)
	put := func(after time.Duration, r trace.Record) {
		at = at.Add(after)
		r.At = at
		l.Record(r)
	}
	ms := time.Millisecond
	put(0, trace.Record{Dir: trace.Outgoing, Kind: trace.KindRequest, Size: 2, Text: "POST https://diarization.example/v1/live", Raw: json.RawMessage(`{}`)})
	put(12*ms, trace.Record{Kind: trace.KindLookup, Took: 11 * ms, Text: "192.0.2.7"})
	put(21*ms, trace.Record{Kind: trace.KindConnect, Took: 20 * ms, Text: "192.0.2.7:443"})
	put(25*ms, trace.Record{Kind: trace.KindTLS, Took: 24 * ms, Text: "TLS 1.3, h2, certificate for diarization.example by Some Authority"})
	put(30*ms, trace.Record{Dir: trace.Incoming, Kind: trace.KindResponse, Size: 120, Code: 200, Took: 88 * ms, Text: "HTTP/2.0, X-Request-Id 7c1d"})
	put(50*ms, trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindHandshake, Code: 101, Took: 49 * ms, Text: "HTTP/1.1"})
	put(0, trace.Record{Stream: 1, Dir: trace.Outgoing, Kind: trace.KindPing, Size: 8})
	put(23*ms, trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindPong, Size: 8, Took: 23 * ms})
	for i := range int64(400) {
		gap, unacked := 100*ms, 0
		if i == 300 {
			gap, unacked, waiting = 1800*ms, 19_200, 17
		}
		took := 300 * time.Microsecond
		r := trace.Record{Stream: 1, Dir: trace.Outgoing, Kind: trace.KindChunk, Size: 6400, Chunk: i, Took: took, Gap: gap, Waiting: waiting,
			Socket: &trace.SocketState{RTT: 21 * ms, RTTVar: 2 * ms, Window: 10, Unacked: unacked}}
		if i >= 300 {
			r.Ahead = -1700 * ms
			r.Socket.Retransmits = 3
		}
		if i == 0 {
			r.Gap = 0
		}
		put(gap, r)
		if i > 0 && i%60 == 0 {
			e := protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, float64(i-10)/10, "SPEAKER_00")
			put(5*ms, trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindEvent, Type: e.Type, Size: len(e.Raw), Raw: e.Raw,
				Lag: 1005 * ms, Text: fmt.Sprintf("SPEAKER_00 at %.3f s", e.Timestamp)})
		}
		if i == 310 {
			raw := json.RawMessage(`{"type":"error","message":"Invalid chunk size"}`)
			put(2*ms, trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindError, Type: "error", Fault: true, Text: "Invalid chunk size", Size: len(raw), Raw: raw})
		}
		waiting = max(waiting-1, 0)
	}
	if end {
		put(10*ms, trace.Record{Stream: 1, Dir: trace.Incoming, Kind: trace.KindClose, Code: 1008, Text: "audio more than 5 s ahead", Size: 25})
		put(0, trace.Record{Stream: 1, Kind: trace.KindEnd, Code: 1008, Type: "refused", Fault: true, Text: "the service closed the stream: against the service's rules"})
	}
	return l
}

// LateLog is 60 s of a stream whose events come lag late, and whose newest pong took as
// long as pong and came that long ago.
func LateLog(lag, pong, ago time.Duration) *trace.Log {
	l, now := trace.NewLog(), time.Unix(1_000_000, 0)
	put := func(ago time.Duration, r trace.Record) {
		r.At, r.Stream = now.Add(-ago), 1
		l.Record(r)
	}
	put(time.Minute, trace.Record{Kind: trace.KindHandshake, Dir: trace.Incoming, Code: 101})
	put(ago+pong, trace.Record{Kind: trace.KindPing, Dir: trace.Outgoing})
	put(ago, trace.Record{Kind: trace.KindEvent, Dir: trace.Incoming, Type: protocol.TypeSpeakerStart, Lag: lag})
	put(ago, trace.Record{Kind: trace.KindPong, Dir: trace.Incoming, Took: pong})
	if ago > 2*time.Second {
		put(ago-2*time.Second, trace.Record{Kind: trace.KindPing, Dir: trace.Outgoing})
	}
	return l
}
