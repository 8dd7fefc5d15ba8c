package capture

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/capture/audiofile"
	"hubbub/capture/capturetest"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// twoTones has a tone of 500 Hz on its first channel and of 1500 Hz on its second.
func twoTones(rate, n int) []float32 {
	a, b := capturetest.Tone(rate, 500, n), capturetest.Tone(rate, 1500, n)
	both := make([]float32, 2*n)
	for i := range n {
		both[2*i], both[2*i+1] = a[i], b[i]
	}
	return both
}

// stereoWAV is twoTones as a file.
func stereoWAV(rate, n int) []byte {
	file, le := audiofile.WAV(twoTones(rate, n)), binary.LittleEndian
	le.PutUint16(file[22:], 2) // channels
	le.PutUint32(file[24:], uint32(rate))
	le.PutUint32(file[28:], uint32(4*rate)) // bytes in a second
	le.PutUint16(file[32:], 4)              // bytes of a frame
	return file
}

// TestChannels: the mix has both channels, a number selects one, each keeps them
// apart; of files and of devices.
func TestChannels(t *testing.T) {
	path := write(t, "two.wav", stereoWAV(44100, 44100))
	device := func(selected Channels) Source {
		d := &fakeDevice{rate: 44100, channels: 2, demand: make(chan struct{}, 50), failAt: 11}
		d.frames = twoTones(44100, 44100)
		for range 12 {
			d.demand <- struct{}{}
		}
		return testkit.Must(openMicWith(context.Background(), "", micConfig{Mic, is(d), selected, stallAfter, elapsed}))(t)
	}
	file := func(selected Channels) Source {
		return testkit.Must(Open(t.Context(), Spec{Input: path, Channels: selected}))(t)
	}
	const both, low, high = 3, 1, 2
	for _, c := range []struct {
		selected Channels
		tracks   []int
	}{{Mix, []int{both}}, {1, []int{low}}, {2, []int{high}}, {Each, []int{low, high}}} {
		for name, open := range map[string]func(Channels) Source{"file": file, "device": device} {
			s := NewChunkReader(t.Context(), open(c.selected), Fast)
			tracks := make([][]float32, len(c.tracks))
			for chunk := range s.Chunks() {
				if len(chunk.Tracks) != len(c.tracks)*ChunkSamples || len(chunk.Samples) != ChunkSamples {
					t.Fatalf("%s, %v: %d samples, %d of tracks", name, c.selected, len(chunk.Samples), len(chunk.Tracks))
				}
				for i := range tracks {
					tracks[i] = append(tracks[i], chunk.Tracks[i*ChunkSamples:(i+1)*ChunkSamples]...)
				}
				if chunk.Seq == 8 {
					break
				}
			}
			for i, want := range c.tracks {
				x := tracks[i][1600:14000]
				for _, f := range []struct {
					hz float64
					is int
				}{{500, low}, {1500, high}} {
					at, _ := capturetest.Power(x, SampleRate, f.hz)
					if heard := capturetest.DB(at/0.125) > -20; heard != (want&f.is != 0) {
						t.Errorf("%s, channels %v, track %d: %v Hz has %.1f dB", name, c.selected, i, f.hz, capturetest.DB(at/0.125))
					}
				}
			}
		}
	}
	length := 0
	for chunk := range NewChunkReader(t.Context(), file(Mix), Fast).Chunks() {
		length += chunk.Valid
	}
	if length != SampleRate {
		t.Errorf("a second of 44.1 kHz has %d samples", length)
	}
	for _, c := range []struct {
		input    string
		selected Channels
		want     string
	}{{path, 3, "has 2 channels, not 3"}, {filepath.Join("audiofile", "testdata", "mono22.mp3"), 2, "has 1 channel, not 2"}} {
		if _, err := Open(t.Context(), Spec{Input: c.input, Channels: c.selected}); err == nil || !strings.Contains(err.Error(), c.want) || hint.Of(err) == "" {
			t.Errorf("%s, %v: %v", c.input, c.selected, err)
		}
	}
	for _, text := range []string{"0", "-1", "both", "257"} {
		if c, err := ParseChannels(text); err == nil {
			t.Errorf("%q is %v", text, c)
		}
	}
}

// TestOppositePhase: a mix in which the channels cancel each other out is noticed, any other is not.
func TestOppositePhase(t *testing.T) {
	tone := capturetest.Tone(SampleRate, 500, SampleRate)
	other := capturetest.Tone(SampleRate, 1500, SampleRate)
	for _, c := range []struct {
		name     string
		second   func(i int) float32
		selected Channels
		want     bool
	}{
		{"opposite phase", func(i int) float32 { return -0.98 * tone[i] }, Mix, true},
		{"opposite phase, one channel", func(i int) float32 { return -tone[i] }, 1, false},
		{"the same", func(i int) float32 { return tone[i] }, Mix, false},
		{"another signal", func(i int) float32 { return other[i] }, Mix, false},
		{"silence", func(int) float32 { return 0 }, Mix, false},
	} {
		b := stereoWAV(SampleRate, SampleRate)
		for i := range tone {
			binary.LittleEndian.PutUint16(b[44+4*i+2:], uint16(int16(c.second(i)*32767)))
		}
		src := testkit.Must(Open(t.Context(), Spec{Input: write(t, "two.wav", b), Channels: c.selected}))(t)
		testkit.Must(rest(t.Context(), src))(t)
		testkit.Equal(t, strings.Contains(strings.Join(src.Notices(), "\n"), "opposite phase"), c.want, c.name, "notices", src.Notices())
		testkit.NoError(t, src.Close())
	}
}
