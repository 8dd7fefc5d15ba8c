package audiofile

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
	"github.com/mewkiz/flac/meta"

	"hubbub/capture/capturetest"
	"hubbub/protocol/testkit"
)

// flacBytes encodes the same samples into each channel, in blocks of 1024.
func flacBytes(t testing.TB, x []float32, rate, channels, bits int, stateLength bool) []byte {
	t.Helper()
	info := &meta.StreamInfo{BlockSizeMin: 1024, BlockSizeMax: 1024, SampleRate: uint32(rate), NChannels: uint8(channels), BitsPerSample: uint8(bits)}
	if stateLength {
		info.NSamples = uint64(len(x))
	}
	var b bytes.Buffer
	enc := testkit.Must(flac.NewEncoder(&b, info))(t)
	for num := 0; len(x) > 0; num++ {
		n := min(1024, len(x))
		f := &frame.Frame{Header: frame.Header{HasFixedBlockSize: true, BlockSize: uint16(n), SampleRate: uint32(rate),
			Channels: frame.Channels(channels - 1), BitsPerSample: uint8(bits), Num: uint64(num)}}
		for range channels {
			s := &frame.Subframe{SubHeader: frame.SubHeader{Pred: frame.PredVerbatim}, NSamples: n}
			for _, v := range x[:n] {
				s.Samples = append(s.Samples, int32(math.Round(float64(v)*math.Ldexp(0.999, bits-1))))
			}
			f.Subframes = append(f.Subframes, s)
		}
		testkit.NoError(t, enc.WriteFrame(f))
		x = x[n:]
	}
	testkit.NoError(t, enc.Close())
	return b.Bytes()
}

func TestFLAC(t *testing.T) {
	want := capturetest.Tone(SampleRate, 440, 5000)
	for _, bits := range []int{8, 16, 24} {
		for _, channels := range []int{1, 2, 5} {
			for _, stated := range []bool{true, false} {
				name := fmt.Sprintf("%d bits, %d channels, length stated %v", bits, channels, stated)
				b := flacBytes(t, want, SampleRate, channels, bits, stated)
				d := mustDecode(t, name, b, false, 700)
				if f := d.format; f.Rate != SampleRate || f.Channels != channels || stated != (f.Duration() > 0) || d.notices != "" {
					t.Errorf("%s: %+v, notices %q", name, f, d.notices)
				}
				capturetest.Same(t, name, d.samples, want, 2*math.Ldexp(1, -min(bits, 10)))
			}
		}
	}
}

// TestFLACWidth: a file whose samples the decoder does not know is not called damaged.
func TestFLACWidth(t *testing.T) {
	b := flacBytes(t, capturetest.Tone(SampleRate, 440, 5000), SampleRate, 1, 24, true)
	b[20], b[21] = b[20]|1, b[21]|0xF0 // STREAMINFO: bits of a sample, minus 1
	for _, stream := range []bool{false, true} {
		rejected(t, "32 bits", b, stream, "32 bits is not supported")
	}
}

// TestFLACEndsAtItsLength: the end of a stream of known length does not wait for more.
func TestFLACEndsAtItsLength(t *testing.T) {
	b := flacBytes(t, capturetest.Tone(SampleRate, 440, SampleRate), SampleRate, 1, 16, true)
	behind := 0
	d := testkit.Must(OpenStream("stdin", io.MultiReader(bytes.NewReader(b), readerFunc(func([]byte) (int, error) { behind++; return 0, io.EOF })), &Notices{}))(t)
	for x, err := make([]float32, 1024), error(nil); err == nil; {
		_, err = d.Read(x)
	}
	testkit.Equal(t, behind, 0, "reads behind the audio")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestFLACDamage: silence takes the place of damaged frames, and what follows them is at its time.
func TestFLACDamage(t *testing.T) {
	x := capturetest.Tone(SampleRate, 440, SampleRate)
	complete := flacBytes(t, x, SampleRate, 1, 16, true)
	unstated := flacBytes(t, x, SampleRate, 1, 16, false)
	first := bytes.Index(complete, []byte{0xFF, 0xF8})
	damaged := func(b []byte, from, to int) []byte {
		b = bytes.Clone(b)
		for i := from; i < to; i++ {
			b[i] ^= 0x55
		}
		return b
	}
	half, end := len(complete)/2, len(complete)
	tag := append([]byte("ID3\x04\x00\x00\x00\x00\x02\x00"), make([]byte, 256)...)
	for _, c := range []struct {
		name    string
		b       []byte
		samples int // at least
		silent  [2]int
		notice  string
	}{
		{"tags before and after", append(append(tag, complete...), "TAG and more"...), 16000, [2]int{}, ""},
		{"another file follows", append(bytes.Clone(complete), complete...), 16000, [2]int{}, "another FLAC file follows, which is not read"},
		{"truncated", complete[:half], 6000, [2]int{}, "truncated: the header states 1.0 s"},
		{"a frame", damaged(complete, half, half+40), 16000, [2]int{7168, 8192}, "damaged; 0.06 s in all are replaced by silence"},
		{"a frame of a file without its length", damaged(unstated, half, half+40), 16000, [2]int{7168, 8192}, "damaged; 0.06 s in all are replaced by silence"},
		{"the first frame", damaged(complete, first+20, first+60), 16000, [2]int{0, 1024}, "damaged; 0.06 s in all are replaced by silence"},
		{"a part is missing", append(bytes.Clone(complete[:half]), complete[half+2000:]...), 16000, [2]int{7168, 11264}, "damaged; 0.26 s in all are replaced by silence"},
		{"the rest", damaged(complete, half, end), 7168, [2]int{}, "damaged after 0.4 s; the remaining 0.6 s are skipped: "},
		{"frames again that were read", append(bytes.Clone(complete[:half]), complete[first:]...), 16000, [2]int{}, ""},
	} {
		for _, stream := range []bool{false, true} {
			d := mustDecode(t, c.name, c.b, stream, 1600)
			if len(d.samples) < c.samples {
				t.Errorf("%s: only %d samples", c.name, len(d.samples))
			}
			want := append([]float32{}, x[:len(d.samples)]...)
			clear(want[c.silent[0]:c.silent[1]])
			capturetest.Same(t, c.name, d.samples, want, 2e-3)
			if n := d.notices; !strings.Contains(n, c.notice) || (n == "") != (c.notice == "") {
				t.Errorf("%s: notices %q", c.name, n)
			}
		}
	}
}

func BenchmarkDecodeFLAC(b *testing.B) {
	benchmarkDecode(b, flacBytes(b, capturetest.Tone(SampleRate, 440, 20*SampleRate), SampleRate, 1, 16, true), 20)
}
