package apikeys

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// mtimeGranularity is how old a change of the folder of records must be before an
// unchanged modification time proves that nothing has changed since: file
// systems have coarse timestamps.
const mtimeGranularity = 2 * time.Second

// revocations are the revoked API keys of a data folder.
type revocations struct {
	folder string // the data folder, "" for none

	// names are the records of the revoked keys, by their names. A map is replaced, never changed:
	// requests do not wait while the records are read, which takes seconds with tens of thousands.
	names atomic.Pointer[map[string]Record]

	mu    sync.Mutex // of what follows
	mtime time.Time  // of the folder of records, when it was read
	read  time.Time
}

// refresh reads the records again if they have changed. After an error of the
// folder itself, the revocations that are known remain.
func (r *revocations) refresh() error {
	if r.folder == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(filepath.Join(r.folder, recordFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	at := info.ModTime()
	if r.all() != nil && at.Equal(r.mtime) && r.read.Sub(at) >= mtimeGranularity {
		return nil
	}
	now := time.Now()
	named, err := readRecords(r.folder)
	if named == nil {
		return err
	}
	maps.DeleteFunc(named, func(_ string, record Record) bool { return record.Revoked == nil })
	r.names.Store(&named)
	if err == nil { // otherwise the records are read again: a repaired one does not change the folder
		r.mtime, r.read = at, now
	}
	return err
}

// all returns the records of the revoked keys, by their names, nil before they were read.
func (r *revocations) all() map[string]Record {
	if names := r.names.Load(); names != nil {
		return *names
	}
	return nil
}
