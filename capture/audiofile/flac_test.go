package audiofile

import (
	"bytes"
	"fmt"
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
	enc, err := flac.NewEncoder(&b, info)
	testkit.NoError(t, err)
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

func TestFLACDamage(t *testing.T) {
	x := capturetest.Tone(SampleRate, 440, SampleRate)
	complete := flacBytes(t, x, SampleRate, 1, 16, true)
	broken := bytes.Clone(complete)
	for i := range 40 {
		broken[len(broken)/2+i] ^= 0x55
	}
	tag := append([]byte("ID3\x04\x00\x00\x00\x00\x02\x00"), make([]byte, 256)...)
	for _, c := range []struct {
		name   string
		b      []byte
		min    int
		notice string
	}{
		{"tags before and after", append(append(tag, complete...), "TAG and more"...), 16000, ""},
		{"truncated", complete[:len(complete)/2], 6000, "truncated: the header states 1.0 s"},
		{"damaged", broken, 6000, "damaged after 0.4 s; the remaining 0.6 s are skipped: "},
	} {
		d := mustDecode(t, c.name, c.b, false, 1600)
		if len(d.samples) < c.min {
			t.Errorf("%s: only %d samples", c.name, len(d.samples))
		}
		capturetest.Same(t, c.name, d.samples, x[:len(d.samples)], 2e-3)
		if n := d.notices; !strings.Contains(n, c.notice) || (n == "") != (c.notice == "") {
			t.Errorf("%s: notices %q", c.name, n)
		}
	}
}

func BenchmarkDecodeFLAC(b *testing.B) {
	benchmarkDecode(b, flacBytes(b, capturetest.Tone(SampleRate, 440, 20*SampleRate), SampleRate, 1, 16, true), 20)
}
