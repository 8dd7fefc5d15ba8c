//go:build cgo

package device

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// TestALSAConfigWithoutAudio: a configuration that defines no device is an error
// with a hint. PortAudio would abort this process.
func TestALSAConfigWithoutAudio(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "comment": "# nothing\n", "control": "ctl.!default { type hw card 0 }\n"} {
		path := filepath.Join(dir, name)
		testkit.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		t.Setenv("ALSA_CONFIG_PATH", path+":"+filepath.Join(dir, "missing"))
		_, err := List(context.Background())
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(hint.Of(err), "ALSA_CONFIG_PATH") {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := filepath.Join(dir, "good")
	testkit.NoError(t, os.WriteFile(good, []byte("# pulse\npcm.!default { type null }\n"), 0o600))
	t.Setenv("ALSA_CONFIG_PATH", filepath.Join(dir, "empty")+":"+good)
	testkit.NoError(t, checkALSAConfig())
}
