package localserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
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
	file := filepath.Join(s.options.DataDir, controlFile)
	_ = os.Remove(file) // of a process that was killed: the folder is locked
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", file)
	if err == nil {
		err = os.Chmod(file, 0o600)
	}
	if err != nil {
		s.log.Warn("the store cannot be backed up while the server runs", "error", err)
		if l != nil {
			_ = l.Close()
		}
		return
	}
	mux := http.NewServeMux()
	var busy atomic.Bool
	mux.HandleFunc("GET "+backupPath, func(w http.ResponseWriter, r *http.Request) {
		if !busy.CompareAndSwap(false, true) {
			http.Error(w, "another backup is being made", http.StatusServiceUnavailable)
			return
		}
		defer busy.Store(false)
		s.backUp(w, r)
	})
	s.control = &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: s.http.ErrorLog}
	go func() {
		if err := s.control.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the store can no longer be backed up while the server runs", "error", err)
		}
	}()
}

// backUp answers with a backup.
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

// Backup writes a backup of a data folder, for store.Restore. If a server uses
// the folder, it makes the backup and continues to serve meanwhile. Errors that a
// user can do something about carry a hint.
func Backup(ctx context.Context, dir string, w io.Writer) error {
	var dialer net.Dialer
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", filepath.Join(dir, controlFile))
		}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server"+backupPath, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(request)
	if err != nil { // no server: the folder is free, or whoever uses it has no socket
		return store.BackupFolder(ctx, dir, w)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxHeader))
		return fmt.Errorf("the server makes no backup: %s", text)
	}
	if _, err = io.Copy(w, res.Body); err != nil {
		return hint.Add(fmt.Errorf("the backup was cut off: %w", err),
			"The log of the server says why, if it ended it.")
	}
	return nil
}
