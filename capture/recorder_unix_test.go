//go:build unix

package capture

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/capture/capturetest"
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
	src, err := Open(t.Context(), Spec{Input: "parec"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	s := Start(ctx, src, ChunkReaderOptions{})
	back := time.After(60 * time.Second)
	for gaps := 0; gaps == 0; {
		select {
		case _, ok := <-s.Chunks():
			if !ok {
				t.Fatal(s.Err())
			}
			st := s.Stats()
			if o := st.Outage; o != nil && !strings.Contains(fmt.Sprint(o.Err), "Connection terminated") {
				t.Fatal(o.Err)
			}
			if st.Outage == nil {
				gaps = len(st.Gaps)
			}
		case <-back:
			t.Fatal("the recorder is not started again")
		}
	}
	end()
	for range s.Chunks() {
	}
	capturetest.NoGroup(t, filepath.Join(dir, "pid"))
}

// TestDefaultOutput: what the machine plays is captured from the output that is the default now, in whose place nothing
// stands.
func TestDefaultOutput(t *testing.T) {
	capturetest.Need(t, "pulseaudio", "pactl", "parec")
	server := capturetest.SoundServer(t)
	server.Use(t)
	pactl := func(args ...string) {
		if out, err := server.Command("pactl", args...).CombinedOutput(); err != nil {
			t.Fatalf("pactl %v: %v\n%s", args, err, out)
		}
	}
	pactl("load-module", "module-null-sink", "sink_name=headphones", "sink_properties=device.description=Headphones")
	pactl("set-default-sink", "mic")
	src, err := Open(t.Context(), Spec{Input: "speakers"})
	if err != nil {
		t.Fatal(err)
	}
	r := Start(t.Context(), src, ChunkReaderOptions{})
	defer r.Close()
	pactl("set-default-sink", "headphones")
	late := time.After(60 * time.Second)
	for st := r.Stats(); st.Outage != nil || st.Device != "Monitor of Headphones"; st = r.Stats() {
		select {
		case _, more := <-r.Chunks():
			if !more {
				t.Fatal(r.Err())
			}
		case <-late:
			t.Fatalf("%q is still captured: %+v", st.Device, st)
		}
	}
	if st := r.Stats(); st.StandsIn != "" || len(st.Gaps) != 1 {
		t.Errorf("%+v", st)
	}
}
