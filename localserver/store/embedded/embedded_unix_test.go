//go:build unix

package embedded

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubbub/localserver/store/datafolder"
	"hubbub/protocol/testkit"
)

// onReady is a log that calls a function when the NATS server has opened its streams.
type onReady struct {
	slog.Handler
	call func()
}

func (o onReady) Enabled(context.Context, slog.Level) bool { return true }

func (o onReady) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "Server is ready") {
		o.call()
	}
	return nil
}

// A server does not run while the files have second names: what is deleted would remain.
func TestSecondNamesThatCannotBeRemoved(t *testing.T) {
	var limit syscall.Rlimit
	testkit.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	ready := func() {}
	dir := t.TempDir()
	s := started(t, dir, onReady{slog.DiscardHandler, func() { ready() }})
	conn := testkit.Must(nats.Connect("", nats.InProcessServer(s)))(t)
	js := testkit.Must(jetstream.New(conn))(t)
	testkit.Must(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "A"}))(t)
	conn.Close()
	ready = func() { testkit.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none)) }
	err := s.Restart()
	testkit.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	if !errors.Is(err, syscall.EMFILE) {
		t.Error(err)
	}
	ready = func() {}
	testkit.NoError(t, s.Restart())
	if left, _ := filepath.Glob(datafolder.Streams(dir) + ".*"); len(left) > 0 {
		t.Errorf("%q remain", left)
	}
	if _, err := os.Stat(filepath.Join(datafolder.Streams(dir), "A", "meta.inf")); err != nil {
		t.Error(err)
	}
}
