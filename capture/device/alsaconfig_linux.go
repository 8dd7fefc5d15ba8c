//go:build cgo

package device

import (
	"bufio"
	"bytes"
	"os"
	"strings"

	"hubbub/protocol/hint"
)

// alsaDefaults is ALSA's configuration file unless ALSA_CONFIG_PATH is set.
const alsaDefaults = "/usr/share/alsa/alsa.conf"

// checkALSAConfig rejects an ALSA configuration without any definition for
// audio: PortAudio would abort the process.
func checkALSAConfig() error {
	path := os.Getenv("ALSA_CONFIG_PATH")
	if path == "" {
		path = alsaDefaults
	}
	for file := range strings.SplitSeq(path, ":") {
		raw, err := os.ReadFile(file)
		if err != nil {
			if path == alsaDefaults {
				return nil // some distributions keep it elsewhere
			}
			continue // as ALSA does
		}
		if definesAudio(raw) {
			return nil
		}
	}
	return hint.Errorf("Correct or unset ALSA_CONFIG_PATH; the default configuration is in the package libasound2-data or alsa-lib. Or use --input FILE.",
		"the ALSA configuration defines no audio device: %s", path)
}

// definesAudio reports whether a configuration defines a PCM or includes
// another file.
func definesAudio(config []byte) bool {
	for s := bufio.NewScanner(bytes.NewReader(config)); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if strings.HasPrefix(line, "pcm") || strings.HasPrefix(line, "<") || strings.HasPrefix(line, "@") {
			return true
		}
	}
	return false
}
