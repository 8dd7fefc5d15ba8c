//go:build unix

package capture

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hubbub/capture/capturetest"
	"hubbub/protocol/testkit"
)

// TestNamedPipe: a path that is not a regular file is read as a stream, and
// opening one without a writer can be cancelled.
func TestNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, Spec{Input: path}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	w, err := os.OpenFile(path, os.O_RDWR, 0) // lets the opener that was given up go
	testkit.NoError(t, err)
	defer w.Close()

	path = filepath.Join(t.TempDir(), "fifo") // another one, which that opener cannot read
	testkit.NoError(t, syscall.Mkfifo(path, 0o600))
	want := capturetest.Tone(SampleRate, 440, 5000)
	go func() {
		w, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return
		}
		_, _ = w.Write(rawFloats(want))
		_ = w.Close()
	}()
	src := testkit.Must(openPath(t, path))(t)
	if i := src.Info(); i.Kind != File || i.Base != "fifo" {
		t.Errorf("%+v", i)
	}
	capturetest.Same(t, "fifo", readAll(t, src, 1600), want, 0)
}
