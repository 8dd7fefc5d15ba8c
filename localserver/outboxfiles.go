package localserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// outboxFolder is in the data folder: a file for each stream that ended
	// while the store was away.
	outboxFolder = "outbox"
	outboxEnding = ".json"
)

func (o *outbox) file(r *remains) string { return filepath.Join(o.folder, r.Stream+outboxEnding) }

// save writes what remains of a stream, whole, to the disk.
func (o *outbox) save(r *remains) error {
	if o.folder == "" {
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.folder, 0o700); err != nil {
		return err
	}
	return writeWhole(o.file(r), raw)
}

func (o *outbox) unlink(r *remains) error {
	if o.folder == "" {
		return nil
	}
	err := os.Remove(o.file(r))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// load takes in what an earlier run could not deliver. What cannot be read is
// told in the error and left where it is.
func (o *outbox) load() error {
	if o.folder == "" {
		return nil
	}
	entries, err := os.ReadDir(o.folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		stream, ok := strings.CutSuffix(e.Name(), outboxEnding)
		if !ok { // one that was being written
			continue
		}
		raw, err := os.ReadFile(filepath.Join(o.folder, e.Name()))
		r := &remains{}
		if err == nil {
			err = json.Unmarshal(raw, r)
		}
		if err == nil && (r.Stream != stream || !r.Status.Over() || r.First < 0 || r.Trying < 0 || r.Trying > len(r.Events)) {
			err = errors.New("it is damaged")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.Name(), err))
			continue
		}
		o.waiting = append(o.waiting, r)
		o.bytes += r.size()
	}
	return errors.Join(errs...)
}
