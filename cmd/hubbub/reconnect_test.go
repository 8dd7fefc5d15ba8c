package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/localserver/engine/enginetest"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// cutter is a network between a program and a server that can be cut.
type cutter struct {
	t     *testing.T
	proxy *toxiproxy.Proxy
	url   string
}

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled)
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	c := &cutter{t: t, proxy: toxiproxy.NewProxy(api, "network", reservePort(t), strings.TrimPrefix(server, "https://"))}
	c.connect()
	t.Cleanup(c.proxy.Stop)
	return c
}

func (c *cutter) connect() {
	c.t.Helper()
	// A process that is being started has the listener of before, too, until it runs its own program.
	testkit.Eventually(c.t, "a listener", func() bool { return c.proxy.Start() == nil })
	c.url = "https://" + c.proxy.Listen
}

func (c *cutter) cut() { c.proxy.Stop() }

// TestReconnect cuts the network in the middle of a conversation, then
// kills the server and starts it again on the same folder. To the outside
// nothing has happened: one timeline with the labels and turns of a run
// without trouble, and all of the audio in the recording.
func TestReconnect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wav, rec, whole := filepath.Join(dir, "talk.wav"), filepath.Join(dir, "rec"), filepath.Join(dir, "whole.rttm")
	samples := enginetest.Demo(t)[:34*capture.SampleRate]
	writeWAV(t, wav, samples)
	calm := start(t, "live", "--input", wav, "--pace", "fast", "--output", "rttm")
	calm.ends(exitOK)
	testkit.NoError(t, os.WriteFile(whole, []byte(calm.output()), 0o600))

	server, url := serve(t, "--api-key", "k", "--data", filepath.Join(dir, "data"), "--listen", reservePort(t))
	net := newCutter(t, url)
	p := start(t, "live", "--input", wav, "--server", net.url, "--api-key", "k", "--insecure", "--record", rec, "--output", "events",
		"--reconnect", testkit.Timeout.String())
	recorded := func(seconds float64) func() bool {
		return func() bool { // by the recording, which has half a second of delay at most
			info, err := os.Stat(filepath.Join(rec, recording.AudioFile))
			return err == nil && float64(info.Size()) > seconds*2*capture.SampleRate
		}
	}
	testkit.Eventually(t, "ten seconds of audio", recorded(10))
	net.cut()
	p.says("stream lost, resuming: ", 1)
	net.connect()
	p.says("the stream continues", 1)
	testkit.Eventually(t, "twenty seconds of audio", recorded(20))
	server.signal(os.Kill)
	server.exit()
	p.says("stream lost, resuming: ", 2)
	serve(t, "--api-key", "k", "--data", filepath.Join(dir, "data"), "--listen", strings.TrimPrefix(url, "https://"))
	p.says("the stream continues", 2)
	p.ends(exitOK)
	if strings.Contains(p.errors(), "new labels") || strings.Contains(p.errors(), "not decided") || strings.Contains(p.errors(), "dropped") {
		t.Errorf("standard error: %s", p.errors())
	}

	checkPaired(t, p.output())
	checkTurns(t, filepath.Join(rec, recording.TurnsFile), whole)
	testkit.Equal(t, recordedSeconds(t, filepath.Join(rec, recording.AudioFile)), float64(len(samples))/capture.SampleRate, "seconds that are recorded")
}

// checkPaired checks that every start has one end, on one clock.
func checkPaired(t *testing.T, events string) {
	t.Helper()
	line := protocol.NewTimeline()
	for raw := range strings.SplitSeq(strings.TrimSpace(events), "\n") {
		e := testkit.Must(protocol.ParseEvent([]byte(raw)))(t)
		line.Apply(e)
	}
	s := line.Snapshot()
	if s.Counts.Degenerate != 0 || slices.ContainsFunc(s.Lanes, func(l protocol.Lane) bool { return l.Open }) {
		t.Errorf("the events are no legal session: %+v", s.Counts)
	}
}

// score compares turns, both RTTM.
func score(t *testing.T, reference, turns string) (rate struct{ DER, Confusion float64 }) {
	t.Helper()
	p := start(t, "score", reference, turns, "--output", "json")
	p.ends(exitOK)
	testkit.NoError(t, json.Unmarshal([]byte(p.output()), &rate))
	return rate
}

// checkTurns compares the turns of a recording with those of a run without trouble,
// both RTTM: the labels are the same, the times nearly.
func checkTurns(t *testing.T, recorded, whole string) {
	t.Helper()
	rate := score(t, whole, recorded)
	t.Logf("difference to the run without trouble: %.2f %%", 100*rate.DER)
	if rate.DER > 0.08 {
		t.Errorf("the timeline differs by %.1f %% from that of a run without trouble, labels by %.1f %%", 100*rate.DER, 100*rate.Confusion)
	}
	labels := func(rttm string) (out []string) {
		f := testkit.Must(os.Open(rttm))(t)
		defer f.Close()
		turns := testkit.Must(protocol.ReadRTTM(f))(t)
		for _, turn := range turns {
			if !slices.Contains(out, turn.Speaker) {
				out = append(out, turn.Speaker)
			}
		}
		slices.Sort(out)
		return out
	}
	testkit.EqualSlices(t, labels(recorded), labels(whole), "labels")
}

// TestReconnectGivesUp has no server to come back to: the program ends with the
// reason, and keeps what there is.
func TestReconnectGivesUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, url := serve(t, "--api-key", "k", "--data", filepath.Join(dir, "data"))
	p := start(t, "live", "--input", talkFile(t, 0), "--server", url, "--api-key", "k", "--insecure", "--output", "events",
		"--record", filepath.Join(dir, "rec"), "--reconnect", "1500ms")
	p.line(`speaker_start`)
	_ = server.Process.Kill()
	p.ends(exitFailed)
	if text := p.errors(); !strings.Contains(text, "not replaced within 1.5s") || !strings.Contains(text, "refuses connections") || !strings.Contains(text, "--reconnect") {
		t.Errorf("standard error: %s", text)
	}
	if starts, ends := strings.Count(p.output(), protocol.TypeSpeakerStart), strings.Count(p.output(), protocol.TypeSpeakerEnd); starts != ends {
		t.Errorf("%d starts and %d ends", starts, ends)
	}
	length := recordedSeconds(t, filepath.Join(dir, "rec", recording.AudioFile))
	if length < 1 {
		t.Error("the recording is empty")
	}
	// The outage is no silence.
	r := testkit.Must(recording.Read(t.Context(), filepath.Join(dir, "rec")))(t)
	if n := len(r.Info.Gaps); n != 1 || r.Info.Gaps[0].End != length || r.Info.Gaps[0].Start >= length {
		t.Errorf("of %.1f s the recording has the gaps %v", length, r.Info.Gaps)
	}
}

// TestScreenAfterAnOutage: names that were not saved are not lost with the service.
func TestScreenAfterAnOutage(t *testing.T) {
	t.Parallel()
	server, url := serve(t, "--api-key", "k")
	x := inTerminal(t, 100, 30, "live", "--input", talkFile(t, 0), "--server", url, "--api-key", "k", "--insecure", "--reconnect", "1s")
	x.Shows("SPEAKER_00")
	x.Keys("1", "r", "Anna", "Enter")
	x.Shows("Anna")
	server.signal(os.Kill)
	x.Shows("not replaced within 1s", "Anna")
	x.Keys("Escape", "e")
	x.Shows("exported 6 files into ")
	x.Keys("q")
	x.ends(exitFailed)
}

// TestReconnectInterrupted interrupts while there is no connection: the program
// ends soon, in order.
func TestReconnectInterrupted(t *testing.T) {
	t.Parallel()
	server, url := serve(t, "--api-key", "k", "--data", t.TempDir())
	p := start(t, "live", "--input", talkFile(t, 0), "--server", url, "--api-key", "k", "--insecure", "--output", "json", "--reconnect", "1h")
	server.says("stream opened", 1)
	_ = server.Process.Kill()
	p.says("stream lost, resuming: ", 1)
	p.signal(os.Interrupt)
	p.ends(exitInterrupted)
}

// TestReconnectOnTheScreen shows a lost connection and its return.
func TestReconnectOnTheScreen(t *testing.T) {
	t.Parallel()
	_, url := serve(t, "--api-key", "k", "--data", t.TempDir())
	net := newCutter(t, url)
	x := inTerminal(t, 110, 30, "live", "--input", talkFile(t, 0), "--server", net.url, "--api-key", "k", "--insecure")
	x.Shows("connected", "SPEAKER_00")
	net.cut()
	x.Shows("^ *hubbub +no connection, try", "○ reconnecting ")
	net.connect()
	x.Shows("connected", "the stream continues")
	x.Keys("q")
	x.ends(exitOK)
}
