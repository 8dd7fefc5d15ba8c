package localserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol/hint"
)

// A server with a store in its data folder takes the commands of its operator at
// a socket in this folder, which nobody else can open.
const (
	controlFile = "control.sock"
	backupPath  = "/backup"
)

// startControl serves the operator's commands. Without it the server works, but
// can only be backed up while it is stopped.
func (s *Server) startControl(ctx context.Context) {
	if s.options.DataDir == "" || s.store.Shared() {
		return
	}
	l, err := listenControl(ctx, s.options.DataDir)
	if err != nil {
		s.log.Warn("the store cannot be backed up while the server runs", "error", err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+backupPath, s.backUp)
	operator := s.newHTTPServer(mux)
	s.others = append(s.others, operator)
	go func() {
		if err := operator.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the store can no longer be backed up while the server runs", "error", err)
		}
	}()
}

// listenControl creates the socket of a data folder.
func listenControl(ctx context.Context, dir string) (net.Listener, error) {
	file := filepath.Join(dir, controlFile)
	_ = os.Remove(file) // of a process that was killed: the folder is locked
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", file)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(file, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// backUp responds with a backup.
func (s *Server) backUp(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if err := s.store.Backup(ctx, &downloadWriter{ResponseWriter: w, request: r, control: http.NewResponseController(w)}); err != nil {
		s.log.Error("a backup failed", "error", err)
		panic(http.ErrAbortHandler) // so that the client sees that it is incomplete
	}
	s.log.Info("backup made", "duration", time.Since(began).Round(time.Millisecond))
}

// Backup writes a backup of a data folder, for backup.Restore. If a server uses
// the folder, it makes the backup and continues to serve meanwhile. Errors that a
// user can do something about carry a hint.
func Backup(ctx context.Context, dir string, w io.Writer) error {
	return backUpWithin(ctx, dir, w, transferTimeout)
}

// backUpWithin is Backup from a server that may be silent for as long as limit.
func backUpWithin(ctx context.Context, dir string, w io.Writer, limit time.Duration) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join(dir, controlFile))
	if err != nil { // no server: the folder is free, or whoever uses it has no socket
		return store.BackupFolder(ctx, dir, w)
	}
	defer func() { _ = conn.Close() }()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return limitedConn{conn, limit}, nil }}}
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://server"+backupPath, nil) // the address is valid
	res, err := client.Do(request)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return hint.Add(fmt.Errorf("the server that uses %s does not respond", dir), "Stop it, then back up its folder.")
	}
	if err == nil {
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusOK {
			return hint.Errorf("Stop it, then back up its folder.", "the server that uses %s responded with %s", dir, res.Status)
		}
		_, err = io.Copy(w, res.Body)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the address, which nobody else uses
	}
	if err != nil {
		return hint.Add(fmt.Errorf("the backup was cut off: %w", err),
			"The log of the server says why, if it ended it.")
	}
	return nil
}

// limitedConn ends when nothing arrives for a time.
type limitedConn struct {
	net.Conn
	limit time.Duration
}

func (c limitedConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}
