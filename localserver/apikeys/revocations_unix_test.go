//go:build unix

package apikeys

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

// Requests do not wait for the reading of records: a pipe in the place of one holds it up here.
func TestRequestsWhileRecordsAreRead(t *testing.T) {
	dir := t.TempDir()
	key := mustCreate(t, dir, "a", PlanPro, time.Now())
	k := ringOf(dir, time.Now)
	pipe := filepath.Join(dir, recordFolder, "pipe"+recordSuffix)
	testkit.NoError(t, syscall.Mkfifo(pipe, 0o600))
	read := make(chan struct{})
	go func() {
		defer close(read)
		_ = k.Refresh(t.Context()) // a pipe is no record
	}()
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for its reader
	testkit.NoError(t, err)
	end := time.AfterFunc(10*time.Second, func() { _ = w.Close() })
	if !accepts(k, key) {
		t.Error("the key is refused")
	}
	if !end.Stop() {
		t.Error("a request has waited for the records")
	}
	_ = w.Close()
	<-read
}
