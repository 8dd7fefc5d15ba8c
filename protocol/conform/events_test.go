package conform

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// script makes messages: +LABEL@SECONDS starts a turn, -LABEL@SECONDS ends one,
// and anything else is a message itself. After a slash comes the audio that had
// been sent, otherwise it is a minute.
func script(t *testing.T, lines ...string) []message {
	t.Helper()
	var out []message
	for _, l := range lines {
		m := message{kind: websocket.TextMessage, sent: time.Minute}
		if l, ok := strings.CutPrefix(l, "binary "); ok {
			m.kind = websocket.BinaryMessage
			m.Event, _ = protocol.ParseEvent([]byte(l))
		} else if l[0] == '+' || l[0] == '-' {
			what, sent, timed := strings.Cut(l[1:], "/")
			label, at, _ := strings.Cut(what, "@")
			typ := map[byte]string{'+': protocol.TypeSpeakerStart, '-': protocol.TypeSpeakerEnd}[l[0]]
			if len(label) == 1 {
				label = "SPEAKER_0" + label
			}
			m.Event, _ = protocol.ParseEvent(fmt.Appendf(nil, `{"type":%q,"data":{"timestamp":%s,"speaker":%q}}`, typ, at, label))
			if timed {
				d := testkit.Must(time.ParseDuration(sent))(t)
				m.sent = d
			}
		} else {
			m.Event, _ = protocol.ParseEvent([]byte(l))
		}
		out = append(out, m)
	}
	return out
}

// probed is a run in which a step had that result.
func probed[T any](t *testing.T, s *shared[T], result T) *prober {
	p := newProber(t.Context(), Options{})
	p.shared.Store(s, func() T { return result })
	return p
}

// Each fault of events is found by its rule, and the other rules hold.
func TestEventRules(t *testing.T) {
	for name, tt := range map[string]struct {
		script  []string
		differs []string
	}{
		"right":         {script: []string{"+0@0.5", "+1@1.25", "-0@2.001", "-1@3", "+0@3", "-0@4"}},
		"none":          {script: nil, differs: []string{"events/speech"}},
		"errors alone":  {script: []string{`{"type":"error","message":"no"}`}, differs: []string{"events/speech"}},
		"more fields":   {script: []string{`{"type":"diarization_speaker_start","data":{"timestamp":1,"speaker":"SPEAKER_00","x":1},"y":2}`, "-0@2"}},
		"no JSON":       {script: []string{"+0@1", "{", "-0@2"}, differs: []string{"events/shape"}},
		"no speaker":    {script: []string{"+0@1", `{"type":"diarization_speaker_start","data":{"timestamp":1}}`, "-0@2"}, differs: []string{"events/shape"}},
		"text as time":  {script: []string{"+0@1", `{"type":"diarization_speaker_end","data":{"timestamp":"2","speaker":"SPEAKER_00"}}`, "-0@2"}, differs: []string{"events/shape"}},
		"capitals":      {script: []string{"+0@1", `{"type":"diarization_speaker_end","data":{"Timestamp":2,"Speaker":"SPEAKER_00"}}`}, differs: []string{"events/shape"}},
		"capital type":  {script: []string{"+0@1", "-0@2", `{"Type":"error","message":"no"}`}, differs: []string{"events/shape"}},
		"both cases":    {script: []string{"+0@1", `{"type":"diarization_speaker_end","data":{"timestamp":2,"speaker":"SPEAKER_00","Confidence":1},"Id":1}`}},
		"no message":    {script: []string{"+0@1", "-0@2", `{"type":"error"}`}, differs: []string{"events/shape"}},
		"binary":        {script: []string{`binary {"type":"diarization_speaker_start","data":{"timestamp":1,"speaker":"SPEAKER_00"}}`, "-0@2"}, differs: []string{"events/shape"}},
		"unknown type":  {script: []string{"+0@1", `{"type":"hello"}`, "-0@2"}, differs: []string{"events/types"}},
		"starts alone":  {script: []string{"+0@1", "+1@2"}, differs: []string{"events/pairs", "events/speech"}},
		"open turn":     {script: []string{"+0@1", "+1@2", "-0@3"}, differs: []string{"events/pairs"}},
		"two ends":      {script: []string{"+0@1", "-0@2", "-0@2"}, differs: []string{"events/pairs"}},
		"stray end":     {script: []string{"+0@1", "-7@1.5", "-0@2"}, differs: []string{"events/pairs"}},
		"doubled":       {script: []string{"+0@1", "+0@1", "-0@2", "-0@2"}, differs: []string{"events/one-turn"}},
		"inside":        {script: []string{"+0@1", "+0@2", "-0@3", "-0@4"}, differs: []string{"events/one-turn"}},
		"no length":     {script: []string{"+0@1", "-0@1"}, differs: []string{"events/length"}},
		"backwards":     {script: []string{"+0@1", "-0@0.5"}, differs: []string{"events/length", "events/order"}},
		"out of order":  {script: []string{"+0@1", "-0@3", "+1@2", "-1@4"}, differs: []string{"events/order"}},
		"too precise":   {script: []string{"+0@1.0005", "-0@2"}, differs: []string{"events/milliseconds"}},
		"a little more": {script: []string{"+0@1.0000001", "-0@2"}, differs: []string{"events/milliseconds"}},
		"zeros":         {script: []string{"+0@1.25000", "-0@2"}},
		"an exponent":   {script: []string{"+0@1.25e-1", "-0@2E0"}},
		"early":         {script: []string{"+0@1.3/1200ms", "-0@2"}, differs: []string{"events/received"}},
		"just heard":    {script: []string{"+0@1.2/1200ms", "-0@2"}},
		"second first":  {script: []string{"+1@1", "-1@2", "+0@3", "-0@4"}, differs: []string{"events/labels"}},
		"left out":      {script: []string{"+0@1", "-0@2", "+2@3", "-2@4"}, differs: []string{"events/labels"}},
		"names":         {script: []string{"+Anna@1", "-Anna@2"}, differs: []string{"events/labels"}},
		"nine": {script: []string{"+0@1", "-0@2", "+1@2", "-1@3", "+2@3", "-2@4", "+3@4", "-3@5", "+4@5", "-4@6", "+5@6", "-5@7",
			"+6@7", "-6@8", "+7@8", "-7@9", "+8@9", "-8@10"}, differs: []string{"events/speakers"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := probed(t, conversation, &exchange{messages: script(t, tt.script...)})
			var got []string
			for _, r := range eventRules {
				var seen string
				ended := try(func() { seen = r.check(p) })
				switch {
				case ended == nil && seen == "":
					t.Errorf("%s holds and has no observation", r.Name)
				case ended != nil && ended.verdict == Differs:
					got = append(got, r.Name)
				case ended != nil && len(turnLines(tt.script)) > 0 && r.Name != "events/length":
					t.Errorf("%s: %v", r.Name, ended)
				}
			}
			slices.Sort(got)
			testkit.EqualSlices(t, got, tt.differs, "differs")
		})
	}
}

func turnLines(script []string) (out []string) {
	for _, l := range script {
		if strings.ContainsAny(l[:1], "+-") {
			out = append(out, l)
		}
	}
	return out
}

func checkOf(rule string) func(*prober) string {
	rules, _ := Select(Options{Only: []string{rule}})
	return rules[0].check
}

// The rules that take long are tested on results.
func TestSlowRules(t *testing.T) {
	closing := script(t, `{"type":"error","message":"No audio for 60 s"}`)
	closed := ending{over: true, code: websocket.ClosePolicyViolation}
	for name, tt := range map[string]struct {
		talk exchange
		want string // part of what was seen where it differs; "" where it holds
	}{
		"right":       {exchange{messages: closing, end: closed, closeTook: 60 * time.Second}, ""},
		"too early":   {exchange{messages: closing, end: closed, closeTook: 30 * time.Second}, "30s after"},
		"never":       {exchange{messages: closing}, "stayed open"},
		"no message":  {exchange{end: closed, closeTook: 61 * time.Second}, "1008"},
		"other close": {exchange{messages: closing, end: ending{over: true, code: 1000}, closeTook: 60 * time.Second}, "1000"},
		"no close":    {exchange{messages: closing, end: ending{over: true}, closeTook: 60 * time.Second}, "without a close frame"},
	} {
		err := try(func() { checkOf("stream/silence")(probed(t, silence, &tt.talk)) })
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.seen, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, talk := range map[string]exchange{
		"the stream stayed open":          {pings: 3, closeTook: 18 * time.Second},
		"5.0 s without a pong":            {pings: 2, end: ending{over: true}, closeTook: 5 * time.Second},
		"15.0 s without a pong, after 0 ": {end: ending{over: true}, closeTook: 15 * time.Second},
	} {
		if err := try(func() { checkOf("stream/keep-alive")(probed(t, mute, &talk)) }); err == nil || !strings.Contains(err.seen, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for status, holds := range map[int]bool{401: true, 101: false, 403: false} {
		p := probed(t, oldToken, &response{status: status, header: map[string][]string{"Content-Type": {"application/json"}},
			body: []byte(`{"requestId":"x","message":"used"}`)})
		if err := try(func() { checkOf("token/lifetime")(p) }); (err == nil) != holds {
			t.Errorf("%d: %v", status, err)
		}
	}
}
