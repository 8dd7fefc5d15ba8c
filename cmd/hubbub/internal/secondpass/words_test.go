package secondpass

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"hubbub/capture"
	"hubbub/capture/audiofile"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/protocol/words"
)

// loudest is a recogniser whose text is the largest sample of the audio.
type loudest struct{}

func (loudest) Recognise(_ context.Context, wav []byte, _ bool) (string, []words.Word, error) {
	top := int16(0)
	for samples := wav[44:]; len(samples) > 1; samples = samples[2:] {
		top = max(top, int16(uint16(samples[0])|uint16(samples[1])<<8))
	}
	return fmt.Sprint(top), nil, nil
}

// TestWordsOfAChannel: the recogniser hears the channels that the turns are of.
func TestWordsOfAChannel(t *testing.T) {
	t.Parallel()
	wav := audiofile.WAVHeader(2 * 64000)
	wav[22], wav[32] = 2, 4 // channels, bytes of a frame
	frame := []byte{0, 32, 0, 0}
	file := filepath.Join(t.TempDir(), "two.wav")
	testkit.NoError(t, os.WriteFile(file, append(wav, bytes.Repeat(frame, 32000)...), 0o600))
	for selected, want := range map[capture.Channels]string{1: "8192", 2: "0", capture.Mix: "4096"} {
		turns := []protocol.Turn{{Speaker: "SPEAKER_00", Start: 0.5, End: 1.5}}
		testkit.Must(Transcribe(t.Context(), file, selected, loudest{}, turns, nil, &Progress{}))(t)
		testkit.Equal(t, turns[0].Text, want, "channels", selected)
	}
	// At the same time on both channels.
	turns := []protocol.Turn{{Speaker: "SPEAKER_01", Start: 0.5, End: 1.5}, {Speaker: "SPEAKER_00", Start: 0.5, End: 1.5}}
	if _, err := Transcribe(t.Context(), file, capture.Each, loudest{}, turns, map[string]int{"SPEAKER_00": 0, "SPEAKER_01": 1}, &Progress{}); err != nil || turns[0].Text != "0" || turns[1].Text != "8192" {
		t.Errorf("each: %v, %v", turns, err)
	}
}
