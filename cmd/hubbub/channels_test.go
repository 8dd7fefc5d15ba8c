package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"hubbub/capture"
	"hubbub/capture/audiofile"
	"hubbub/localserver/engine/enginetest"
	"hubbub/protocol/testkit"
)

// twoChannels writes the first 25 s of the demo: on the first channel up to a time,
// then on the second.
func twoChannels(t *testing.T, second int) string {
	t.Helper()
	var data bytes.Buffer
	for i, x := range enginetest.Demo(t)[:25*capture.SampleRate] {
		frame := [2]int16{int16(x * 32767), 0}
		if i >= second*capture.SampleRate {
			frame[0], frame[1] = 0, frame[0]
		}
		_ = binary.Write(&data, binary.LittleEndian, frame)
	}
	header := audiofile.WAVHeader(int64(data.Len()))
	header[22], header[32] = 2, 4 // channels, bytes of a frame
	path := filepath.Join(t.TempDir(), "two.wav")
	testkit.NoError(t, os.WriteFile(path, append(header, data.Bytes()...), 0o600))
	return path
}

// TestEachChannelIsASpeaker: with --channels each, a turn has the label of its
// channel, live and in the second pass; a channel by number has only its speech.
func TestEachChannelIsASpeaker(t *testing.T) {
	t.Parallel()
	const second = 7 // between two people of the demo
	path := twoChannels(t, second)
	for _, args := range [][]string{
		{"live", "--input", path, "--pace", "fast", "--output", "json"},
		{"diarize", path, "--output", "json"},
	} {
		p := start(t, append(args, "--channels", "each")...)
		p.ends(0)
		found := map[string]int{}
		for _, line := range p.messages() {
			var turn struct {
				Speaker    string
				Start, End float64
			}
			if err := json.Unmarshal([]byte(line), &turn); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			found[turn.Speaker]++
			want := "SPEAKER_00"
			if (turn.Start+turn.End)/2 > second {
				want = "SPEAKER_01"
			}
			testkit.Equal(t, turn.Speaker, want, args[0], line)
		}
		testkit.Equal(t, len(found), 2, args[0], "turns by label", found)
	}
}

// TestTwoInputs: two different devices may be given, and nothing else twice.
func TestTwoInputs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		inputs []string
		valid  bool
	}{
		{[]string{"mic"}, true}, {[]string{"a.wav"}, true}, {[]string{"mic", "speakers"}, true}, {[]string{"parec:USB", "speakers:HDMI"}, true},
		{[]string{"mic", "mic"}, false}, {[]string{"a.wav", "mic"}, false}, {[]string{"mic", "-"}, false}, {[]string{"mic", "speakers", "parec"}, false},
	} {
		var f inputFlag
		var err error
		for _, text := range c.inputs {
			err = errors.Join(err, f.Set(text))
		}
		if valid := errors.Join(err, f.check()) == nil; valid != c.valid {
			t.Errorf("%q: valid %v, want %v", c.inputs, valid, c.valid)
		}
	}
}
