package jobs

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"hubbub/localserver/store"
)

const (
	// MaxBytes is the largest file of a job.
	MaxBytes = 1 << 30
	// mediaScheme is the beginning of a media location.
	mediaScheme = "media://"
)

// fetch copies the audio of a job into a file in a folder.
func (a *attempt) fetch(folder, address string) (path string, err error) {
	path = filepath.Join(folder, "audio")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	name, ok := strings.CutPrefix(address, mediaScheme)
	if !ok {
		return "", failed("The address %s cannot be fetched.", address)
	}
	return path, a.copyMedia(file, name)
}

func (a *attempt) copyMedia(to io.Writer, name string) error {
	media, err := a.Store.OpenMedia(a.ctx, a.job.Account, name, a.Now())
	if errors.Is(err, store.ErrNotFound) {
		return failed("Nothing is stored at %s%s; upload the audio again, it may have expired.", mediaScheme, name)
	}
	if err != nil {
		return err
	}
	defer func() { _ = media.Close() }()
	if media.Size > MaxBytes {
		return failed("The audio is larger than 1 GiB.")
	}
	_, err = io.Copy(to, contextReader{a.ctx, media})
	return err
}

// contextReader reads until its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
