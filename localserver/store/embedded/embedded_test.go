package embedded

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubbub/localserver/store/datafolder"
	"hubbub/protocol/testkit"
)

// After all tests no goroutine may be left, including those of the NATS servers.
func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// started is a server that is stopped at the end of the test.
func started(t *testing.T, dir string, log slog.Handler) *Server {
	t.Helper()
	s := testkit.Must(Start(dir, slog.New(log)))(t)
	t.Cleanup(func() { testkit.NoError(t, s.Stop()) })
	return s
}

// What was written is there after a restart, over the same connection.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	s := started(t, dir, slog.DiscardHandler)
	conn := testkit.Must(nats.Connect("", nats.InProcessServer(s), nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond)))(t)
	t.Cleanup(conn.Close)
	js := testkit.Must(jetstream.New(conn))(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	bucket := testkit.Must(js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "b"}))(t)
	testkit.Must(bucket.Put(ctx, "key", []byte("value")))(t)
	testkit.NoError(t, s.Check(t.Context()))
	testkit.NoError(t, s.Restart())
	if !s.server.JetStreamConfig().SyncAlways {
		t.Error("a write is acknowledged before it is on the disk: a power failure loses it")
	}
	testkit.Equal(t, s.server.JetStreamConfig().SyncInterval, compactionInterval, "until the space of deleted messages is freed")
	stored := func() bool {
		attempt, done := context.WithTimeout(ctx, time.Second) // the request may be lost with the old connection
		defer done()
		entry, err := bucket.Get(attempt, "key")
		return err == nil && string(entry.Value()) == "value"
	}
	testkit.Eventually(t, "the value after the restart", stored)
	block := filepath.Join(datafolder.Streams(dir), "KV_b", "msgs", "2.blk")
	testkit.NoError(t, os.Symlink("nowhere", block))
	if err := s.Restart(); err == nil || !strings.Contains(err.Error(), block) {
		t.Errorf("a restart with a block that cannot be opened: %v", err)
	}
	testkit.NoError(t, os.RemoveAll(block))
	if runtime.GOOS != "windows" {
		testkit.NoError(t, os.Mkdir(block, 0o700)) // which can be opened, but not read: the NATS server deletes the stream
		if err := s.Restart(); err == nil || !strings.Contains(err.Error(), "KV_b") {
			t.Errorf("a restart with a block that cannot be read: %v", err)
		}
		testkit.NoError(t, os.RemoveAll(block))
	}
	testkit.NoError(t, s.Restart())
	testkit.Eventually(t, "the value, which the blocks have not cost", stored)
	if _, err := os.Stat(filepath.Join(dir, datafolder.JetStream)); err != nil {
		t.Error(err)
	}
}

func TestStopped(t *testing.T) {
	s := started(t, t.TempDir(), slog.DiscardHandler)
	testkit.NoError(t, s.Stop()) // the second time, at the end, there is nothing to do
	_, err := s.InProcessConn()
	for name, err := range map[string]error{"connect": err, "check": s.Check(t.Context())} {
		if !errors.Is(err, errNotRunning) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A health check that fails is no warning of its own: it is repeated as long as the disk is full.
func TestHealthChecksAreNotLogged(t *testing.T) {
	var log bytes.Buffer
	s := started(t, t.TempDir(), slog.NewTextHandler(&log, nil))
	s.server.Shutdown()
	s.server.WaitForShutdown()
	if err := s.Check(t.Context()); err == nil {
		t.Error("a server that was shut down is healthy")
	}
	if log.Len() > 0 {
		t.Errorf("the log has %s", &log)
	}
}

// A server that hangs is noticed in bounded time, and after that no call waits for it.
func TestServerThatHangs(t *testing.T) {
	s := started(t, t.TempDir(), slog.DiscardHandler)
	s.mu.Lock() // as a call that does not return
	defer func() {
		s.mu.Unlock()
		s.checked.Store(nil)
		s.timeout.stop = stopTimeout
	}()
	s.timeout.stop = time.Millisecond
	if err := s.Stop(); !errors.Is(err, ErrHangs) {
		t.Errorf("stop: %v", err)
	}
	s.timeout.stop = checkTimeout
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Check(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a check whose context has ended: %v", err)
	}
	s.timeout.check = time.Millisecond
	for call, err := range map[string]error{
		"check": s.Check(t.Context()), "last check": s.WriteError(), "stop": s.Stop(), "restart": s.Restart(),
	} {
		if !errors.Is(err, ErrHangs) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// A server that cannot start again says why at once, and does not keep clients waiting
// while it starts.
func TestFailedStart(t *testing.T) {
	dir := t.TempDir()
	s := started(t, dir, slog.DiscardHandler)
	folder, moved := filepath.Join(dir, datafolder.JetStream), filepath.Join(dir, "moved")
	testkit.NoError(t, s.Stop())
	testkit.NoError(t, os.Rename(folder, moved))
	testkit.NoError(t, os.WriteFile(folder, nil, 0o600))
	began := time.Now()
	err := s.Restart()
	if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "not a directory") || took > startTimeout/2 {
		t.Errorf("%v, after %v", err, took)
	}
	s.mu.Lock() // as while it starts
	_, err = s.InProcessConn()
	s.mu.Unlock()
	if !errors.Is(err, errNotRunning) {
		t.Errorf("a connection to a server that starts: %v", err)
	}
	testkit.NoError(t, os.Remove(folder))
	testkit.NoError(t, os.Rename(moved, folder))
	testkit.NoError(t, s.Restart())
	testkit.NoError(t, s.Check(t.Context()))
}

// A health check that fails now and then, because the machine is busy, is no
// failure of the store; one that always fails is.
func TestHealthCheckThatFailsOnce(t *testing.T) {
	failed := errors.New("not ready after 1ms")
	checks := 0
	err := persistent(func() error {
		if checks++; checks%healthChecks != 0 {
			return failed
		}
		return nil
	})
	if err != nil {
		t.Errorf("%v after %d checks", err, checks)
	}
	testkit.Equal(t, persistent(func() error { return failed }), failed)
}
