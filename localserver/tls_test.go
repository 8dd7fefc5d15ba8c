package localserver

import (
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// What clients need to trust a self-signed certificate is in the data folder,
// readable by everybody, and the log says where, with the fingerprint.
func TestCAFile(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), &logBuffer{}
	h := serve(t, log.use, func(o *setup) { o.DataDir = dir })
	file := filepath.Join(dir, "ca.pem")
	raw, err := os.ReadFile(file)
	if err != nil || string(raw) != string(h.CAPEM()) {
		t.Fatalf("%q %v", raw, err)
	}
	testkit.HasMode(t, file, 0o644)
	if strings.Contains(string(raw), "PRIVATE") {
		t.Error("it contains the private key")
	}
	block, _ := pem.Decode(h.CAPEM())
	fingerprint := strings.ReplaceAll(fmt.Sprintf("% X", sha256.Sum256(block.Bytes)), " ", ":")
	for _, want := range []string{file, fingerprint} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not contain %s", want)
		}
	}
}
