package jobs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hubbub/localserver/outbound"
	"hubbub/localserver/store"
	"hubbub/protocol"
)

const (
	// maxBytes is the largest file of a job.
	maxBytes = 1 << 30
	// fetchTime bounds the fetching of an address, and fetchIdle the time without a
	// byte.
	fetchTime = time.Hour
	fetchIdle = 30 * time.Second
)

// fetch copies the audio of a job into a file in a folder.
func (a *attempt) fetch(folder, address string) (path string, err error) {
	path = filepath.Join(folder, "audio")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	to := spaceWriter{file, folder}
	name, ok := strings.CutPrefix(address, protocol.MediaScheme)
	if ok {
		return path, a.copyMedia(to, name)
	}
	return path, a.copyWeb(to, address)
}

// spaceWriter writes to a file in a folder, and fails when the disk has only the space
// left that streams need.
type spaceWriter struct {
	file   io.Writer
	folder string
}

func (s spaceWriter) Write(p []byte) (int, error) {
	if store.AdmitFile(s.folder, int64(len(p))) != nil {
		return 0, errNoSpace
	}
	return s.file.Write(p)
}

func (a *attempt) copyMedia(to io.Writer, name string) error {
	media, err := a.Store.OpenMedia(a.ctx, a.job.Account, name, a.Now())
	if errors.Is(err, store.ErrNotFound) {
		return failed("Nothing is stored at %s%s; upload the audio again, it may have expired.", protocol.MediaScheme, name)
	}
	if err != nil {
		return err
	}
	defer func() { _ = media.Close() }()
	if media.Size > maxBytes {
		return errTooLarge
	}
	_, err = io.Copy(to, media)
	return err
}

// copyWeb fetches an http address.
func (a *attempt) copyWeb(to io.Writer, address string) error {
	ctx, cancel := context.WithTimeout(a.ctx, fetchTime)
	defer cancel()
	response, err := a.Fetch.Get(ctx, address)
	if err == nil {
		defer func() { _ = response.Body.Close() }()
		switch {
		case response.StatusCode != http.StatusOK:
			return failed("The address could not be fetched: it returned %d.", response.StatusCode)
		case response.ContentLength > maxBytes:
			return errTooLarge
		}
		idle := time.AfterFunc(fetchIdle, cancel)
		defer idle.Stop()
		var n int64
		n, err = io.Copy(to, io.LimitReader(io.TeeReader(response.Body, idleTimer{idle}), maxBytes+1))
		if n > maxBytes {
			return errTooLarge
		}
	}
	_, local := errors.AsType[*os.PathError](err) // the disk
	switch {
	case err == nil, a.ctx.Err() != nil, errors.Is(err, errNoSpace), local:
		return err
	case ctx.Err() != nil:
		return failed("The address could not be fetched in time.")
	}
	return failed("The address could not be fetched: %v.", outbound.Reason(err))
}

var (
	errTooLarge = failed("The audio is larger than 1 GiB.")
	errNoSpace  = failed("The server has no space for the audio.")
)

// idleTimer is a timer that every write starts again.
type idleTimer struct{ *time.Timer }

func (t idleTimer) Write(p []byte) (int, error) {
	t.Reset(fetchIdle)
	return len(p), nil
}
