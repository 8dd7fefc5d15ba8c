package protocol

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"unicode/utf8"
)

func FuzzParseEvent(f *testing.F) {
	for _, seed := range []string{
		`{"type":"diarization_speaker_start","data":{"timestamp":1.24,"speaker":"SPEAKER_00"}}`,
		`{"type":"diarization_speaker_end","data":{"timestamp":1e308,"speaker":"\u0000"}}`,
		`{"type":"error","message":"Invalid chunk size"}`,
		"{\"type\":\n\"x\"}", `{"type":"error","message":null}`, `[]`, ``, "\xff{", `{"type":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := ParseEvent(raw)
		if (err != nil) != (e.Err != "") {
			t.Fatalf("error %v, Err %q", err, e.Err)
		}
		if !json.Valid(e.Raw) || !utf8.Valid(e.Raw) || bytes.ContainsAny(e.Raw, "\n\r") {
			t.Fatalf("Raw is not one line of JSON: %q", e.Raw)
		}
		if math.IsNaN(e.Timestamp) || e.Timestamp < 0 {
			t.Fatalf("timestamp %g", e.Timestamp)
		}
		timeline := NewTimeline()
		timeline.Apply(e)
		timeline.EndOpen(1)
		checkSnapshot(t, timeline.Snapshot())
	})
}

func FuzzParseClientMessage(f *testing.F) {
	for _, seed := range []string{EndOfStreamMessage, `{"type":"x"}`, `{}`, `null`, ``, `{"type":["end_of_stream"]}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := ParseClientMessage(text); err != nil {
			if out := NewErrorEvent(err.Error()); bytes.ContainsAny(out.Raw, "\n\r\x00\x1b") || len(out.Raw) > 400 {
				t.Fatalf("the message is not fit to be sent: %s", out.Raw)
			}
			return
		}
		var m struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(text, &m) != nil || m.Type == "" {
			t.Fatalf("%q was taken", text)
		}
	})
}

func FuzzDecodeChunk(f *testing.F) {
	f.Add(make([]byte, ChunkBytes))
	f.Add(bytes.Repeat([]byte{0, 0, 0xc0, 0x7f}, ChunkSamples)) // NaN
	f.Add(bytes.Repeat([]byte{0xff}, ChunkBytes-1))
	f.Fuzz(func(t *testing.T, frame []byte) {
		dst := make([]float32, ChunkSamples)
		err := DecodeChunk(dst, frame)
		for i, s := range dst {
			if s-s != 0 || err != nil && s != 0 {
				t.Fatalf("sample %d is %g, error %v", i, s, err)
			}
		}
		if err == nil && !bytes.Equal(AppendChunk(nil, dst), frame) {
			t.Fatal("encoding changed the frame")
		}
	})
}

func FuzzReadRTTM(f *testing.F) {
	f.Add([]byte("SPEAKER a 1 1.240 2.623 <NA> <NA> A <NA> <NA>\n;; x\n\nSPEAKER b 1 0x1p3 1 <NA> <NA> B"))
	f.Add([]byte("\ufeffSPEAKER a 1 NaN -Inf <NA> <NA> A"))
	f.Fuzz(func(t *testing.T, text []byte) {
		turns, err := ReadRTTM(bytes.NewReader(text))
		for _, turn := range turns {
			if !(turn.Start >= 0 && turn.End > turn.Start && turn.End <= 2e9) || turn.File == "" || turn.Speaker == "" {
				t.Fatalf("%+v", turn)
			}
		}
		if err != nil && (bytes.ContainsAny([]byte(err.Error()), "\n\x00\x1b") || len(err.Error()) > 300) {
			t.Fatalf("%q", err)
		}
	})
}

func FuzzReadUEM(f *testing.F) {
	f.Add([]byte("a 1 0 90.5\n;; x\nb NA 1e2 1e3"))
	f.Add([]byte("a 1 nan inf"))
	f.Fuzz(func(t *testing.T, text []byte) {
		regions, err := ReadUEM(bytes.NewReader(text))
		for _, r := range regions {
			if !(r.Start >= 0 && r.End > r.Start) || r.File == "" {
				t.Fatalf("%+v", r)
			}
		}
		if err != nil && (bytes.ContainsAny([]byte(err.Error()), "\n\x00\x1b") || len(err.Error()) > 300) {
			t.Fatalf("%q", err)
		}
	})
}
