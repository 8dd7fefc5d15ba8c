//go:build unix

package words

import (
	"context"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

// A process that does not end is killed with the processes that it has started.
func TestProcessIsKilledWithItsChildren(t *testing.T) {
	t.Chdir(t.TempDir()) // so that no path is part of the command
	if err := syscall.Mkfifo("fifo", 0o600); err != nil {
		t.Skip(err)
	}
	r := testkit.Must(New("sh -c 'sleep 1000 >fifo & wait'", "", "", LiveTimeout))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _, _ = r.Recognise(ctx, nil, false)
	}()
	f, err := os.OpenFile("fifo", os.O_RDONLY, 0) // waits for the child
	testkit.NoError(t, err)
	defer f.Close()
	cancel() // kills as the end of its time does
	<-ended
	testkit.NoError(t, f.SetReadDeadline(time.Now().Add(10*time.Second)))
	if _, err := f.Read(make([]byte, 1)); err != io.EOF { // the end of its last writer
		t.Errorf("the child of the process still runs: %v", err)
	}
}

// A recogniser has the environment of its user, without the API keys.
func TestKeysAreKeptFromTheProcess(t *testing.T) {
	t.Setenv("HUBBUB_API_KEY", "secret")
	t.Setenv("HUBBUB_WORDS_KEY", "secret")
	t.Setenv("HUBBUB_WORDS_MODEL", "small")
	r := testkit.Must(New("sh -c 'env | grep -E \"^HUBBUB_(API|WORDS)_\"'", "", "", LiveTimeout))(t)
	if text, _, err := r.Recognise(t.Context(), nil, false); text != "HUBBUB_WORDS_MODEL=small" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
