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
