//go:build cgo

package device

import (
	"os"
	"regexp"
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
		if definesAudio.Match(raw) {
			return nil
		}
	}
	return hint.Errorf("Correct or unset ALSA_CONFIG_PATH; the default configuration is in the package libasound2-data or alsa-lib. Or use --input FILE.",
		"the ALSA configuration defines no audio device: %s", path)
}

// definesAudio finds the definition of a PCM, or the inclusion of another file.
var definesAudio = regexp.MustCompile(`(?m)^\s*(pcm|<|@)`)
