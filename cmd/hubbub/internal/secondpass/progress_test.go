package secondpass

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"hubbub/capture"
	"hubbub/capture/audiofile"
	"hubbub/localserver/engine/offline"
	"hubbub/protocol/testkit"
)

func TestProgressText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p       *Progress
		elapsed time.Duration
		want    string
	}{
		{&Progress{files: 1}, 0, "0s processed"},
		{&Progress{files: 1, begun: 1, unknown: true, processed: time.Minute}, time.Second, "1m0s processed"},
		{&Progress{files: 1, begun: 1, total: time.Hour, processed: 15 * time.Minute}, 10 * time.Second, "15m0s of 1h0m0s, 21 %, 38s left"},
		{&Progress{files: 4, begun: 2, total: time.Hour, processed: time.Hour, compared: time.Hour}, 10 * time.Second, "1h0m0s of 2h0m0s, 50 %, 10s left"},
		{&Progress{files: 1, begun: 1, total: time.Hour, processed: time.Hour, compared: 30 * time.Minute}, 13 * time.Second, "1h0m0s of 1h0m0s, 92 %, 1s left"},
		{&Progress{files: 1, begun: 1, total: time.Hour, processed: time.Hour, compared: time.Hour}, 10 * time.Second, "1h0m0s of 1h0m0s, 100 %"},
		{&Progress{files: 1, begun: 1, total: time.Hour, processed: time.Hour, compared: time.Hour, recognised: time.Minute}, 10 * time.Second, "1h0m0s of 1h0m0s, 100 %, words of 1m0s"},
		{&Progress{files: 2000, begun: 2000, total: 2000 * time.Hour, processed: 1000 * time.Hour, compared: 1000 * time.Hour}, 10 * time.Second, "1000h0m0s of 2000h0m0s, 50 %, 10s left"},
	} {
		testkit.Equal(t, c.p.text(c.elapsed), c.want)
	}
}

// TestProgressOfWords: the audio whose words are known is counted.
func TestProgressOfWords(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.wav")
	testkit.NoError(t, os.WriteFile(file, append(audiofile.WAVHeader(2*32000), make([]byte, 2*32000)...), 0o600))
	var p Progress
	testkit.Must(Transcribe(t.Context(), file, capture.Mix, nil, nil, nil, &p))(t)
	testkit.Equal(t, p.recognised, 2*time.Second)
}

// TestProgressOfDamagedFiles: what cannot be read is not waited for.
func TestProgressOfDamagedFiles(t *testing.T) {
	t.Parallel()
	truncated := filepath.Join(t.TempDir(), "a.wav")
	testkit.NoError(t, os.WriteFile(truncated, append(audiofile.WAVHeader(3600*32000), make([]byte, 2*32000)...), 0o600))
	p := &Progress{files: 3}
	for _, file := range []string{truncated, filepath.Join(t.TempDir(), "missing.wav")} {
		_, err := Run(t.Context(), file, capture.Mix, offline.Options{}, p)
		if (err == nil) != (file == truncated) {
			t.Error(err)
		}
	}
	testkit.Equal(t, p.text(time.Minute), "2s of 4s, 50 %, 1m0s left")
}
