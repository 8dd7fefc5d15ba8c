package capture

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files in testdata: 0.5 s of silence, 0.2 s of a tone of 1 kHz at -6 dB,
// 0.5 s of silence, encoded by LAME.
func mp3File(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMP3 checks tone, length and time, with and without LAME's tag.
func TestMP3(t *testing.T) {
	for _, c := range []struct {
		name           string
		rate, channels int
		length         int // samples; 0 = not stated
	}{
		{"stereo44.mp3", 44100, 2, 19200},
		{"stereo22.mp3", 22050, 2, 19200},
		{"mono22.mp3", 22050, 1, 19200},
		{"mono22-notag.mp3", 22050, 1, 0},
	} {
		src, err := openPath(t, filepath.Join("testdata", c.name))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if i := src.Info(); i.Rate != c.rate || i.Channels != c.channels || i.Notice != "" {
			t.Errorf("%s: %+v", c.name, i)
		}
		x := readAll(t, src, 1000)
		if n := src.(noticer).notices(); len(n) > 0 {
			t.Errorf("%s: notices %q", c.name, n)
		}
		if c.length > 0 && len(x) != c.length {
			t.Errorf("%s: %d samples, want %d", c.name, len(x), c.length)
		}
		first, last := -1, -1
		for i, v := range x {
			if math.Abs(float64(v)) > 0.1 {
				if first < 0 {
					first = i
				}
				last = i
			}
		}
		if math.Abs(float64(first)-8000) > 60 || math.Abs(float64(last)-11200) > 60 {
			t.Errorf("%s: the tone lasts from %d to %d, want 8000 to 11200", c.name, first, last)
		}
		at, rest := power(x[8400:10800], SampleRate, 1000)
		if math.Abs(db(at/0.125)) > 0.5 || db(rest/0.125) > -40 {
			t.Errorf("%s: the tone has %.2f dB, the rest %.1f dB", c.name, db(at/0.125), db(rest/0.125))
		}
	}
}

// TestMP3Damage: tags, truncation and damaged bytes between frames lose only the
// audio they affect.
func TestMP3Damage(t *testing.T) {
	complete := mp3File(t, "stereo44.mp3")
	tag := append([]byte("ID3\x04\x00\x00\x00\x00\x40\x00"), make([]byte, 0x40<<7)...)
	for _, c := range []struct {
		name   string
		b      []byte
		min    int
		notice string
	}{
		{"tags before and after", append(append(tag[:len(tag):len(tag)], complete...), append([]byte("TAG"), make([]byte, 125)...)...), 19200, ""},
		{"truncated", complete[:len(complete)*2/3], 10000, "truncated: the header states 1.2 s"},
		{"garbage", append(append(complete[:5000:5000], bytes.Repeat([]byte{0x12}, 3000)...), complete[5000:]...), 16000, "bytes between the frames"},
	} {
		src, err := openPath(t, write(t, "no-ending", c.b))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		x := readAll(t, src, 1600)
		if len(x) < c.min || len(x) > 19200 {
			t.Errorf("%s: %d samples", c.name, len(x))
		}
		if n := strings.Join(src.(noticer).notices(), "; "); !strings.Contains(n, c.notice) || (n == "") != (c.notice == "") {
			t.Errorf("%s: notices %q", c.name, n)
		}
	}
}

func BenchmarkDecodeMP3(b *testing.B) {
	benchmarkDecode(b, "testdata/stereo44.mp3", 1.2)
}
