//go:build unix

package capture

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/capture/capturetest"
	"hubbub/protocol/testkit"
)

// TestRecorderOutage: a recorder that ends is started again until it
// delivers audio, as a device is reopened, and is killed at the end of the stream.
func TestRecorderOutage(t *testing.T) {
	dir := capturetest.Programs(t, map[string]string{"pactl": capturetest.Pactl, "parec": `here=${0%/*}
echo $$ > "$here/pid"
[ -e "$here/third" ] && { ` + capturetest.Endless + `; }
[ -e "$here/second" ] && { touch "$here/third"; exit 1; }
touch "$here/second"
printf '\000\100%.0s' $(seq 4800)
echo 'Connection terminated' >&2
exit 1`})
	src := testkit.Must(Open(t.Context(), Spec{Input: "parec"}))(t)
	ctx, end := context.WithTimeout(t.Context(), 60*time.Second)
	defer end()
	s := NewChunkReader(ctx, src, Realtime)
	for range s.Chunks() {
		st := s.Stats()
		if o := st.Outage; o != nil && !strings.Contains(o.Reason, "Connection terminated") {
			t.Fatal(o.Reason)
		}
		if st.Outage == nil && len(st.Gaps) > 0 {
			break
		}
	}
	if s.Err() != nil {
		t.Fatalf("the recorder is not started again: %v", s.Err())
	}
	capturetest.NoGroup(t, filepath.Join(dir, "pid"))
}

// TestInterruptedOpening: an interrupt while a recorder opens what PortAudio does not know is no error of the device.
func TestInterruptedOpening(t *testing.T) {
	dir := capturetest.Programs(t, map[string]string{"pactl": capturetest.Pactl, "parec": `touch "${0%/*}/began"; exec sleep 60`})
	ctx, interrupt := context.WithCancel(t.Context())
	opened := make(chan error, 1)
	go func() {
		_, err := Open(ctx, Spec{Input: "mic:Desk"})
		opened <- err
	}()
	testkit.Eventually(t, "the start of the recorder", func() bool {
		_, err := os.Stat(filepath.Join(dir, "began"))
		return err == nil
	})
	interrupt()
	if err := <-opened; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// TestDefaultOutput: what the machine plays is captured from the output that is the default now, in whose place nothing
// stands.
func TestDefaultOutput(t *testing.T) {
	capturetest.Need(t, "pulseaudio", "pactl", "parec")
	server := capturetest.SoundServer(t)
	server.Use(t)
	server.Run(t, "pactl", "load-module", "module-null-sink", "sink_name=headphones", "sink_properties=device.description=Headphones")
	server.Run(t, "pactl", "set-default-sink", "mic")
	src := testkit.Must(Open(t.Context(), Spec{Input: "speakers"}))(t)
	server.Run(t, "pactl", "set-default-sink", "headphones")
	ctx, end := context.WithTimeout(t.Context(), 60*time.Second)
	defer end()
	r := NewChunkReader(ctx, src, Realtime)
	for range r.Chunks() {
		if st := r.Stats(); st.Outage == nil && st.Device == "Monitor of Headphones" {
			break
		}
	}
	if st := r.Stats(); r.Err() != nil || st.StandsIn != "" || len(st.Gaps) != 1 {
		t.Errorf("%v: %+v", r.Err(), st)
	}
}
