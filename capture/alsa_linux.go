//go:build cgo

package capture

import (
	"bufio"
	"bytes"
	"os"
	"strings"
)

// alsaDefaults is where ALSA's configuration begins when nothing else is said.
const alsaDefaults = "/usr/share/alsa/alsa.conf"

// checkSoundSystem refuses a configuration of ALSA in which PortAudio would
// find no section for audio: it ends the whole process then, from C.
func checkSoundSystem() error {
	path := os.Getenv("ALSA_CONFIG_PATH")
	if path == "" {
		path = alsaDefaults
	}
	for _, file := range strings.Split(path, ":") {
		raw, err := os.ReadFile(file)
		if err != nil {
			if path == alsaDefaults {
				return nil // another place, as some distributions have
			}
			continue // ALSA passes over it, too
		}
		if says(raw) {
			return nil
		}
	}
	return fail("Set ALSA_CONFIG_PATH right or unset it; ALSA's own configuration is in the package libasound2-data or alsa-lib. Or give --input FILE.",
		"ALSA's configuration says nothing: %s", path)
}

// says tells a configuration that defines, or reads in, anything of audio.
func says(config []byte) bool {
	for s := bufio.NewScanner(bytes.NewReader(config)); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if strings.HasPrefix(line, "pcm") || strings.HasPrefix(line, "<") || strings.HasPrefix(line, "@") {
			return true
		}
	}
	return false
}
