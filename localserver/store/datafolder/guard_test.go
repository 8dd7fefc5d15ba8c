package datafolder

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"hubbub/protocol/testkit"
)

// What a NATS server has deleted when its process was killed is brought back by the next start, but
// not what was purged meanwhile. Blocks may be on another disk.
func TestGuardOfAKilledProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nothing is protected")
	}
	dir, other := t.TempDir(), t.TempDir()
	for _, name := range []string{"A", "B"} {
		msgs := filepath.Join(Streams(dir), name, "msgs")
		testkit.NoError(t, os.MkdirAll(msgs, 0o700))
		testkit.NoError(t, os.WriteFile(filepath.Join(Streams(dir), name, metaFile), []byte(name), 0o600))
		testkit.NoError(t, os.WriteFile(filepath.Join(other, name+".blk"), []byte(name), 0o600))
		testkit.NoError(t, os.Symlink(filepath.Join(other, name+".blk"), filepath.Join(msgs, "1.blk")))
	}
	has := func(name string) bool {
		raw, err := os.ReadFile(filepath.Join(Streams(dir), name, "msgs", "1.blk"))
		return err == nil && string(raw) == name
	}
	check := func() error {
		g := testkit.Must(NewGuard(dir))(t)
		return g.Check()
	}
	killed := func() {
		testkit.NoError(t, check())
		testkit.NoError(t, os.RemoveAll(filepath.Join(Streams(dir), "A")))
		if err := check(); err == nil { // as of the next process
			t.Error("a stream that was deleted is not noticed")
		}
	}
	killed()
	testkit.NoError(t, CheckAccess(dir))
	if !has("A") || !has("B") {
		t.Errorf("A is there: %v, B: %v", has("A"), has("B"))
	}
	if _, err := os.Stat(guardOf(dir).kept); err == nil {
		t.Error("the second names remain")
	}
	killed()
	testkit.Must(Purge(dir, true))(t)
	testkit.NoError(t, CheckAccess(dir))
	if has("A") || has("B") {
		t.Errorf("purged, A is there: %v, B: %v", has("A"), has("B"))
	}
}
