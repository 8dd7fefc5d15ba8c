package session

import (
	"strings"
	"testing"
	"time"

	"hubbub/capture"
	"hubbub/protocol/testkit"
)

// TestReportInput: what has changed at a microphone is reported, and a device that was
// chosen instead of a silent one is not reported as delivering sound.
func TestReportInput(t *testing.T) {
	silent := capture.Stats{Device: "desk", Silence: capture.Muted, Silent: "desk"}
	for _, c := range []struct {
		was, is capture.Stats
		want    string
	}{
		{capture.Stats{Device: "desk"}, silent, "\"desk\" delivers only silence: is it muted? `hubbub devices` lists all"},
		{silent, silent, ""},
		{silent, capture.Stats{Device: "desk"}, `there is sound from "desk" now`},
		{silent, capture.Stats{Device: "headset"}, ""},
		{capture.Stats{}, capture.Stats{Device: "desk + output", Silence: capture.Quiet, Silent: "desk"}, "almost no sound from \"desk\": is it muted? `hubbub devices` lists all"},
		{capture.Stats{Device: "desk"}, capture.Stats{Device: "desk", Outage: &capture.Outage{Since: time.Minute}}, `no audio from "desk" since 1:00: reopening it until 3:00`},
		{capture.Stats{Device: "desk"}, capture.Stats{Device: "desk", Outage: &capture.Outage{Since: time.Minute, Reason: "parec ended"}}, `no audio from "desk" since 1:00: parec ended; reopening it until 3:00`},
		{capture.Stats{Device: "desk + output"}, capture.Stats{Device: "desk + output", Outage: &capture.Outage{Since: time.Minute, Device: "desk"}}, `no audio from "desk" since 1:00: reopening it; the other device goes on`},
		{capture.Stats{Device: "desk + output", Outage: &capture.Outage{Device: "desk"}}, capture.Stats{Device: "desk + output", Gaps: []capture.Gap{{Start: 60, End: 62}}}, `"desk" delivers audio again; 2.0 s of audio from 1:00 on are missing`},
		{capture.Stats{Device: "desk + output", StandsIn: "headset"}, capture.Stats{Device: "headset + output"}, `"headset" is used again`},
		{capture.Stats{Device: "desk", StandsIn: "headset"}, capture.Stats{Device: "other"}, ""},
		{capture.Stats{}, capture.Stats{Source: "desk"}, ""},
		{capture.Stats{Device: "desk"}, capture.Stats{Device: "desk", Drift: 1}, "\"desk\" delivers more audio than real time: is its sample rate wrong? `hubbub devices` lists all"},
		{capture.Stats{Source: "desk"}, capture.Stats{Source: "headset"}, `the sound server records "headset" instead of "desk" now`},
		{capture.Stats{Device: "desk"}, capture.Stats{Device: "headset", Gaps: []capture.Gap{{Start: 60, End: 62}}}, `"headset" is used instead of "desk"; 2.0 s of audio from 1:00 on are missing`},
		{capture.Stats{Device: "desk + output"}, capture.Stats{Device: "headset + television", Gaps: []capture.Gap{{Start: 60, End: 62}}}, `"headset + television" is used instead of "desk + output"; 2.0 s of audio from 1:00 on are missing`},
	} {
		d := newStub(false)
		testkit.NoError(t, reportInput(c.was, c.is, d))
		testkit.Equal(t, strings.Join(d.notices, "\n"), c.want, c.was, "then", c.is)
	}
}

// TestLossNotices: the end of a session names all audio that is missing.
func TestLossNotices(t *testing.T) {
	testkit.Equal(t, len(lossNotices(capture.Stats{}, 0)), 0)
	got := strings.Join(lossNotices(capture.Stats{Gaps: []capture.Gap{{Start: 10, End: 62}, {Start: 90, End: 91.5}}, Overflows: 1}, 4), "\n")
	if want := `the device delivered no audio for 53.5 s in all
4 chunks of 100 ms dropped: the connection was too slow, or there was none
the device lost audio once: the machine was too busy`; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
