package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

// A store in memory removes the oldest snapshots when there are too many.
func TestSnapshotsInMemoryAreBounded(t *testing.T) {
	s := open(t, "")
	raw := noise(maxSnapshot/2, 1)
	const n = 3 * snapshotMemory / maxSnapshot
	for i := range n {
		testkit.NoError(t, s.PutSnapshot(t.Context(), fmt.Sprint(i), raw, time.Second))
	}
	if _, _, err := s.Snapshot(t.Context(), "0"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the oldest one: %v", err)
	}
	if got, received, err := s.Snapshot(t.Context(), fmt.Sprint(n-1)); len(got) != len(raw) || received != time.Second || err != nil {
		t.Errorf("the newest one: %d bytes after %v (%v)", len(got), received, err)
	}
}
