package audiofile

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hubbub/capture/capturetest"
	"hubbub/protocol/testkit"
)

// The files in testdata: 0.5 s of silence, 0.2 s of a tone of 1 kHz at -6 dB,
// 0.5 s of silence, encoded by LAME; those of 11,025 and 12,000 Hz are MPEG-2.5.
func mp3File(t testing.TB, name string) []byte {
	t.Helper()
	return testkit.Must(os.ReadFile(filepath.Join("testdata", name)))(t)
}

// TestMP3 checks tone, length and time, with and without LAME's tag.
func TestMP3(t *testing.T) {
	for _, c := range []struct {
		name   string
		rate   int
		mono   bool
		length int // samples of 1.2 s; 0 = not stated
	}{
		{"stereo44.mp3", 44100, false, 52920},
		{"stereo22.mp3", 22050, false, 26460},
		{"mono22.mp3", 22050, true, 26460},
		{"mono22-notag.mp3", 22050, true, 0},
		{"mono11.mp3", 11025, true, 13230},
		{"mono12.mp3", 12000, true, 14400},
	} {
		d := mustDecode(t, c.name, mp3File(t, c.name), false, 1000)
		if f := d.format; f.Rate != c.rate || (f.Channels == 1) != c.mono || f.Notice != "" || d.notices != "" {
			t.Errorf("%s: %+v, notices %q", c.name, f, d.notices)
		}
		x := d.samples
		if c.length > 0 && len(x) != c.length {
			t.Errorf("%s: %d samples, want %d", c.name, len(x), c.length)
		}
		sample := func(s float64) int { return int(s * float64(c.rate)) }
		first, last := -1, -1
		for i, v := range x {
			if math.Abs(float64(v)) > 0.1 {
				if first < 0 {
					first = i
				}
				last = i
			}
		}
		if within := sample(0.00375); max(first-sample(0.5), sample(0.5)-first, last-sample(0.7), sample(0.7)-last) > within {
			t.Errorf("%s: the tone lasts from %d to %d at %d Hz", c.name, first, last, c.rate)
		}
		at, rest := capturetest.Power(x[sample(0.525):sample(0.675)], c.rate, 1000)
		if math.Abs(capturetest.DB(at/0.125)) > 0.5 || capturetest.DB(rest/0.125) > -40 {
			t.Errorf("%s: the tone has %.2f dB, the rest %.1f dB", c.name, capturetest.DB(at/0.125), capturetest.DB(rest/0.125))
		}
	}
}

// TestMP3Rate: a file of 8 kHz is told from damaged ones, so that another decoder can read it.
func TestMP3Rate(t *testing.T) {
	if _, err := decode(mp3File(t, "mono8.mp3"), false, 1000); !errors.Is(err, ErrMP3Rate) {
		t.Error(err)
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
		{"tags before and after", append(append(tag[:len(tag):len(tag)], complete...), append([]byte("TAG"), make([]byte, 125)...)...), 52920, ""},
		{"two tags before", append(append([]byte("ID3\x03\x00\x00\x00\x00\x00\x01xID3\x04\x00\x00\x00\x02\x00\x00"), make([]byte, 2<<14)...), complete...), 52920, ""},
		{"truncated", complete[:len(complete)*2/3], 27000, "truncated: the header states 1.2 s"},
		{"a damaged frame", damageFrame(complete, 20), 52920, "damaged; 0.03 s in all are replaced by silence"},
		{"garbage", append(append(complete[:5000:5000], bytes.Repeat([]byte{0x12}, 3000)...), complete[5000:]...), 44100, "bytes between the frames"},
	} {
		d := mustDecode(t, c.name, c.b, false, 1600)
		if n := len(d.samples); n < c.min || n > 52920 {
			t.Errorf("%s: %d samples", c.name, n)
		}
		if n := d.notices; !strings.Contains(n, c.notice) || (n == "") != (c.notice == "") {
			t.Errorf("%s: notices %q", c.name, n)
		}
	}
}

// damageFrame returns a file whose frame states more values than a frame has.
func damageFrame(complete []byte, frame int) []byte {
	b := bytes.Clone(complete)
	at := findMP3(b)
	for range frame {
		at += mp3HeaderAt(b[at:]).size()
	}
	b[at+4+4], b[at+4+5] = 0xff, 0xff // big_values of the first channel
	return b
}

// TestDenseMP3: the data of frames of the highest bit rate may be longer than a frame, and begin in the one before. The
// files have 68 tones, louder and softer by turns; in the second channel backwards.
func TestDenseMP3(t *testing.T) {
	for name, rate := range map[string]int{"dense24.mp3": 24000, "dense22.mp3": 22050} {
		n := rate * 3 / 10
		signal := func(i int) (x float64) {
			for k := 1; k <= 68; k++ {
				x += 0.3 / math.Sqrt(68) * math.Sin(2*math.Pi*100*float64(k*i)/float64(rate)+float64(k*k))
			}
			if i/2400%2 == 1 {
				x /= 20
			}
			return x
		}
		x := mustDecode(t, name, mp3File(t, name), false, 1000).samples
		if len(x) != n {
			t.Fatalf("%s: %d samples, want %d", name, len(x), n)
		}
		var power, noise float64
		for i, v := range x {
			want := (signal(i) + signal(n-1-i)) / 2
			power += want * want
			noise += (float64(v) - want) * (float64(v) - want)
		}
		if db := capturetest.DB(noise / power); db > -20 {
			t.Errorf("%s: noise of %.1f dB", name, db)
		}
	}
}

// TestCutMP3: where a file was cut, the data of the first frames may begin in frames that are missing: they are silent.
func TestCutMP3(t *testing.T) {
	for _, name := range []string{"stereo44.mp3", "mono22.mp3", "mono12.mp3", "dense24.mp3"} {
		complete := mp3File(t, name)
		for cut := findMP3(complete); cut+3000 < len(complete); cut += mp3HeaderAt(complete[cut:]).size() {
			for i, x := range mustDecode(t, name, complete[cut:], false, 1000).samples {
				if math.Abs(float64(x)) > 0.75 {
					t.Errorf("%s from byte %d: sample %d is %g", name, cut, i, x)
					break
				}
			}
		}
	}
}

// TestMP3Checksum: LAME's tag begins at the same place in a frame with a checksum.
func TestMP3Checksum(t *testing.T) {
	b := mp3File(t, "stereo44.mp3")
	b[findMP3(b)+1] &^= 1
	if d := mustDecode(t, "checksum", b, false, 1000); len(d.samples) != 52920 || d.notices != "" {
		t.Errorf("%d samples; notices %q", len(d.samples), d.notices)
	}
}

// TestMP3VBRI: the frame with the tag of Fraunhofer's encoders is no audio, which would be late by its length.
func TestMP3VBRI(t *testing.T) {
	b := mp3File(t, "stereo44.mp3")
	want := mustDecode(t, "Info", b, false, 1000).samples
	at := findMP3(b)
	tag := b[at+36 : at+mp3HeaderAt(b[at:]).size()]
	frames := tag[8:12:12] // of the Info tag, behind its name and flags
	tag = append(append([]byte("VBRI\x00\x01\x04\x51\x00\x4b\x00\x00\x00\x00"), frames...), make([]byte, len(tag)-18)...)
	d := mustDecode(t, "VBRI", slices.Concat(b[:at+36], tag, b[at+36+len(tag):]), false, 1000)
	if d.notices != "" || d.format.Frames < int64(len(want)) {
		t.Errorf("%+v; notices %q", d.format, d.notices)
	}
	capturetest.Same(t, "VBRI", d.samples[:min(len(want), len(d.samples))], want, 0)
}

// TestLongerMP3: where the tag of the first of several joined files states its length only, all audio is used.
func TestLongerMP3(t *testing.T) {
	complete := mp3File(t, "stereo44.mp3")
	tail := append([]byte("some other tag \xff\xfb\x90"), make([]byte, 100)...)
	id3v1, id3v2 := append([]byte("TAG"), make([]byte, 125)...), append([]byte("ID3\x03\x00\x00\x00\x00\x07\x76"), make([]byte, 7<<7+0x76)...)
	ape := append([]byte("APETAGEX\xd0\x07\x00\x00"), make([]byte, 20)...)
	for _, c := range []struct {
		name   string
		b      []byte
		min    int
		notice string
	}{
		{"three files", bytes.Repeat(complete, 3), 3 * 52920, "the header states 1.2 s, but the file contains 3."},
		{"two files with tags", slices.Concat(complete, id3v1, id3v2, complete, ape, id3v1), 2 * 52920, "the header states 1.2 s, but the file contains 2."},
		{"an unknown tag", append(complete[:len(complete):len(complete)], tail...), 52920, ""},
	} {
		for _, stream := range []bool{false, true} {
			d := mustDecode(t, c.name, c.b, stream, 1600)
			if n := len(d.samples); n < c.min || n > c.min+6*1152 || c.notice == "" && n != c.min {
				t.Errorf("%s: %d samples, want %d", c.name, n, c.min)
			}
			if n := d.notices; !strings.HasPrefix(n, c.notice) || (n == "") != (c.notice == "") {
				t.Errorf("%s: notices %q", c.name, n)
			}
		}
	}
}

// TestMP3Padding: a last frame that is padding alone is not audio.
func TestMP3Padding(t *testing.T) {
	b := mp3File(t, "stereo44.mp3")
	at := bytes.Index(b, []byte("Info")) + 4 + 4 + 4 + 4 + 100 + 4 // of LAME's tag, behind flags, frames, bytes, table, quality
	was := int(b[at+22]&15)<<8 | int(b[at+23])
	const padding = 2000
	b[at+22], b[at+23] = b[at+22]&0xf0|padding>>8, padding&0xff
	for _, stream := range []bool{false, true} {
		d := mustDecode(t, "padding", b, stream, 1600)
		if want := 52920 + was - padding; len(d.samples) != want || d.notices != "" {
			t.Errorf("%d samples, want %d; notices %q", len(d.samples), want, d.notices)
		}
	}
}

// TestSilentMP3: frames of silence are nearly zeros alone, as raw samples of silence are.
func TestSilentMP3(t *testing.T) {
	frame := make([]byte, 384)
	copy(frame, "\xff\xfb\x94\x64") // 128 kbit/s, 48 kHz, stereo
	for _, stream := range []bool{false, true} {
		d := mustDecode(t, "silence", bytes.Repeat(frame, 20), stream, 1600)
		if d.format.Rate != 48000 || slices.ContainsFunc(d.samples, func(x float32) bool { return x != 0 }) || d.notices != "" {
			t.Errorf("stream %v: %+v; notices %q", stream, d.format, d.notices)
		}
	}
}

func BenchmarkDecodeMP3(b *testing.B) {
	benchmarkDecode(b, mp3File(b, "stereo44.mp3"), 1.2)
}
