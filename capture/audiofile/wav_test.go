package audiofile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-audio/audio"
	"github.com/go-audio/wav"

	"hubbub/capture/capturetest"
	"hubbub/protocol/testkit"
)

// wavShape is a WAV file for tests, true or lying.
type wavShape struct {
	id             string // "RIFF" if empty
	tag            int
	bits, width    int // width 0 = bits/8
	channels, rate int
	extensible     bool
	align          int   // 0 = what it should be
	dataSize       int64 // -1 = what it should be
	before, after  []byte
}

// order is that of the bytes of all numbers.
func (s wavShape) order() interface {
	binary.ByteOrder
	binary.AppendByteOrder
} {
	if s.id == "RIFX" {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (s wavShape) chunk(id string, body []byte) []byte {
	return slices.Concat(s.order().AppendUint32([]byte(id), uint32(len(body))), body, make([]byte, len(body)%2))
}

func riffChunk(id string, body []byte) []byte { return wavShape{}.chunk(id, body) }

func (s wavShape) bytes(samples []float32) []byte {
	order, width := s.order(), cmp.Or(s.width, s.bits/8)
	var data []byte
	for _, x := range samples {
		var sample [8]byte
		switch {
		case s.tag == tagFloat && width == 4:
			binary.LittleEndian.PutUint32(sample[:], math.Float32bits(x))
		case s.tag == tagFloat:
			binary.LittleEndian.PutUint64(sample[:], math.Float64bits(float64(x)))
		case width == 1:
			sample[0] = byte(int(math.Round(float64(x)*127)) + 128)
		default:
			binary.LittleEndian.PutUint64(sample[:], uint64(int64(math.Round(float64(x)*math.Ldexp(0.999, 8*width-1)))))
		}
		if order == binary.BigEndian {
			slices.Reverse(sample[:width])
		}
		data = append(data, sample[:width]...)
	}
	align, tag := cmp.Or(s.align, width*s.channels), s.tag
	if s.extensible {
		tag = tagExtensible
	}
	format, _ := binary.Append(nil, order, struct {
		Tag, Channels     uint16
		Rate, BytesPerSec uint32
		Align, Bits       uint16
	}{uint16(tag), uint16(s.channels), uint32(s.rate), uint32(s.rate * align), uint16(align), uint16(s.bits)})
	if s.extensible {
		format = order.AppendUint16(order.AppendUint16(format, 22), uint16(s.bits))
		format = append(order.AppendUint16(order.AppendUint32(format, 0), uint16(s.tag)), mediaGUID...)
	}
	size := s.dataSize
	if size == -1 {
		size = int64(len(data))
	}
	if len(s.after) > 0 {
		data = append(data, make([]byte, len(data)%2)...)
	}
	return slices.Concat(order.AppendUint32([]byte(cmp.Or(s.id, "RIFF")), 0x7fff), []byte("WAVE"), s.before, s.chunk("fmt ", format),
		order.AppendUint32([]byte("data"), uint32(size)), data, s.after)
}

// TestWAVFormats: every sample format, with 1, 2 and 6 channels and in both byte orders, gives
// the same audio, from a file and from a stream.
func TestWAVFormats(t *testing.T) {
	want := capturetest.Tone(SampleRate, 440, 4001)
	for _, f := range []struct {
		tag, bits, width int
		within           float64
	}{
		{tagPCM, 8, 0, 0.01}, {tagPCM, 16, 0, 1e-3}, {tagPCM, 24, 0, 1e-3}, {tagPCM, 32, 0, 1e-3}, {tagPCM, 20, 3, 1e-3}, {tagPCM, 24, 4, 1e-3},
		{tagFloat, 32, 0, 1e-6}, {tagFloat, 64, 0, 1e-6},
	} {
		for _, channels := range []int{1, 2, 6} {
			for _, id := range []string{"RIFF", "RIFX"} {
				for _, extensible := range []bool{false, true} {
					name := fmt.Sprintf("%s, tag %d, %d bits in %d, %d channels, extensible %v", id, f.tag, f.bits, f.width, channels, extensible)
					var x []float32
					for _, v := range want {
						for c := range channels { // the mean is the tone
							x = append(x, v+0.1*float32(c)-0.05*float32(channels-1))
						}
					}
					s := wavShape{id: id, tag: f.tag, bits: f.bits, width: f.width, channels: channels, rate: SampleRate, extensible: extensible, dataSize: -1}
					s.before, s.after = s.chunk("JUNK", []byte("odd")), s.chunk("LIST", []byte("INFOabc"))
					b := s.bytes(x)
					d := mustDecode(t, name, b, false, 1000)
					if f := d.format; f.Rate != SampleRate || f.Channels != channels || f.Notice != "" || f.Duration().Round(time.Millisecond) != 250*time.Millisecond || d.notices != "" {
						t.Errorf("%s: %+v, %q", name, f, d.notices)
					}
					capturetest.Same(t, name, d.samples, want, f.within)
					capturetest.Same(t, name+", as a stream", mustDecode(t, name, b, true, 77).samples, want, f.within)
				}
			}
		}
	}
}

// TestCompanded compares with values of ITU-T G.711, on the scale of 16 bits.
func TestCompanded(t *testing.T) {
	for _, c := range []struct {
		tag   int
		bytes []byte
		want  []float32
	}{
		{tagALaw, []byte{0xD5, 0x55, 0xD4, 0xC5, 0x85, 0xAA, 0x2A}, []float32{8, -8, 24, 264, 4224, 32256, -32256}},
		{tagMuLaw, []byte{0xFF, 0x7F, 0xFE, 0xEF, 0x80, 0x00}, []float32{0, 0, 8, 132, 32124, -32124}},
	} {
		var x []float32
		for range 800 {
			for _, b := range c.bytes {
				x = append(x, float32(int(b)-128)/127)
			}
		}
		b := wavShape{tag: c.tag, bits: 8, channels: 1, rate: SampleRate, dataSize: -1}.bytes(x)
		got := mustDecode(t, fmt.Sprint("tag ", c.tag), b, false, 1000).samples
		for i, want := range c.want {
			if got[i] != want/32768 {
				t.Errorf("tag %d, byte %#x: %v, want %v", c.tag, c.bytes[i], got[i]*32768, want)
			}
		}
	}
}

// TestLoudFloats: samples of 16 bits that were stored as floats without a division are
// noticed, once; sound somewhat above full scale is not.
func TestLoudFloats(t *testing.T) {
	tone := capturetest.Tone(SampleRate, 440, 4001)
	for _, scale := range []float32{4, 32768, -32768} {
		x := slices.Clone(tone)
		for i := range x {
			x[i] *= scale
		}
		d := mustDecode(t, "loud", wavShape{tag: tagFloat, bits: 32, channels: 1, rate: SampleRate, dataSize: -1}.bytes(x), false, 1000)
		testkit.Equal(t, (strings.Count(d.notices, "more than 16 times full scale") == 1), scale != 4, "scale", scale, d.notices)
	}
}

// TestWAVFromAnotherWriter reads what go-audio/wav wrote.
func TestWAVFromAnotherWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.wav")
	f := testkit.Must(os.Create(path))(t)
	want := capturetest.Tone(SampleRate, 440, 8000)
	enc := wav.NewEncoder(f, 44100, 16, 2, 1)
	buf := &audio.IntBuffer{Format: &audio.Format{NumChannels: 2, SampleRate: 44100}, SourceBitDepth: 16}
	for _, v := range want {
		buf.Data = append(buf.Data, int(v*32767), int(v*32767))
	}
	testkit.NoError(t, errors.Join(enc.Write(buf), enc.Close(), f.Close()))
	b := testkit.Must(os.ReadFile(path))(t)
	d := mustDecode(t, "go-audio", b, false, 4096)
	if d.format.Rate != 44100 || d.format.Channels != 2 {
		t.Errorf("%+v", d.format)
	}
	capturetest.Same(t, "go-audio", d.samples, want, 1e-4)
}

var mono16 = wavShape{tag: tagPCM, bits: 16, channels: 1, rate: SampleRate, dataSize: -1}

// TestWrongWAVSizes: all audio in the file is used, with a notice if the header
// states another length.
func TestWrongWAVSizes(t *testing.T) {
	x := capturetest.Tone(SampleRate, 440, 2*SampleRate)
	with := func(size int64, after []byte) []byte {
		s := mono16
		s.dataSize, s.after = size, after
		return s.bytes(x)
	}
	complete := with(-1, nil)
	sox24 := wavShape{tag: tagPCM, bits: 24, channels: 1, rate: SampleRate, dataSize: 0x7FFFF000 / 3 * 3}.bytes(x)
	long := wavShape{id: "RF64", tag: tagPCM, bits: 16, channels: 1, rate: SampleRate, dataSize: 0xFFFFFFFF,
		before: riffChunk("ds64", append(append(binary.LittleEndian.AppendUint64(nil, 1<<40), binary.LittleEndian.AppendUint64(nil, uint64(4*SampleRate))...), make([]byte, 12)...)),
		after:  riffChunk("LIST", []byte("INFO"))}.bytes(x)
	for _, c := range []struct {
		name         string
		b            []byte
		file, pipe   int    // samples, as a file and as a stream
		notice, late string // of the file at once; of the stream at its end
	}{
		{"correct", complete, 32000, 32000, "", ""},
		{"truncated", complete[:len(complete)/2], 15989, 15989, "truncated: the header states 2.0 s, the file contains 1.0 s", "truncated: the header states 2.0 s, the file contains 1.0 s"},
		{"truncated in a sample", complete[:len(complete)-1], 31999, 31999, "truncated", "truncated"},
		{"streamed, size 0", with(0, nil), 32000, 32000, "", ""},
		{"streamed, largest size", with(0xFFFFFFFF, nil), 32000, 32000, "", ""},
		{"streamed, as sox does", with(0x7FFFF000, nil), 32000, 32000, "", ""},
		{"streamed, as sox does, of whole frames", sox24, 32000, 32000, "", ""},
		{"killed while recording", with(32000, nil), 32000, 16000, "the header states 1.0 s, but the file contains 2.0 s", ""},
		{"a list follows", with(-1, riffChunk("LIST", make([]byte, 9000))), 32000, 32000, "", ""},
		{"RF64", long, 32000, 32000, "", ""},
	} {
		d := mustDecode(t, c.name, c.b, false, 999)
		if got := len(d.samples); got != c.file {
			t.Errorf("%s: %d samples, want %d", c.name, got, c.file)
		}
		if n := d.format.Notice; !strings.HasPrefix(n, c.notice) || (n == "") != (c.notice == "") {
			t.Errorf("%s: notice %q", c.name, n)
		}
		if c.notice == "" && d.notices != "" {
			t.Errorf("%s: notices %q", c.name, d.notices)
		}
		d = mustDecode(t, c.name, c.b, true, 999)
		if got := len(d.samples); got != c.pipe {
			t.Errorf("%s, as a stream: %d samples, want %d", c.name, got, c.pipe)
		}
		if n := d.notices; !strings.HasPrefix(n, c.late) || (n == "") != (c.late == "") {
			t.Errorf("%s, as a stream: notices %q", c.name, n)
		}
	}
}

// TestInvalidWAVHeaders: the error names the cause and has a hint.
func TestInvalidWAVHeaders(t *testing.T) {
	x := capturetest.Tone(SampleRate, 440, 1600)
	shape := func(change func(*wavShape)) []byte {
		s := mono16
		change(&s)
		return s.bytes(x)
	}
	complete := shape(func(*wavShape) {})
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"zero rate":         {shape(func(s *wavShape) { s.rate = 0 }), "invalid: 0 Hz"},
		"absurd rate":       {shape(func(s *wavShape) { s.rate = 1 << 30 }), "1073741824 Hz"},
		"no channels":       {shape(func(s *wavShape) { s.channels, s.align = 0, 2 }), "0 channels"},
		"too many channels": {shape(func(s *wavShape) { s.channels = 60000 }), "60000 channels"},
		"wrong frame":       {shape(func(s *wavShape) { s.align = 1 }), "inconsistent"},
		"odd frame":         {shape(func(s *wavShape) { s.channels, s.align = 2, 5 }), "inconsistent"},
		"float of 16 bits":  {shape(func(s *wavShape) { s.tag, s.bits, s.width = tagFloat, 16, 2; s.align = 2 })[:60], "not supported"},
		"mu-law of 16 bits": {shape(func(s *wavShape) { s.tag = tagMuLaw }), "not supported"},
		"ADPCM":             {shape(func(s *wavShape) { s.tag = 2 }), "ADPCM"},
		"no audio":          {mono16.bytes(nil), "no audio"},
		"header only":       {complete[:20], "ends"},
		"twelve bytes":      {complete[:12], "ends before its audio"},
		"without audio":     {complete[:44], "ends before its audio"},
		"no format":         {append([]byte("RIFF\x00\x00\x00\x00WAVE"), riffChunk("data", make([]byte, 100))...), "not state the format"},
		"huge chunk":        {append([]byte("RIFF\x00\x00\x00\x00WAVELIST\xff\xff\xff\x7f"), make([]byte, 100)...), "ends within"},
		"huge format":       {append([]byte("RIFF\x00\x00\x00\x00WAVEfmt \xff\xff\xff\x7f"), make([]byte, 100)...), "damaged"},
	} {
		rejected(t, name, c.b, false, c.want)
	}
}

// sparse is a file with a beginning and an end, and zeros between them.
type sparse struct {
	begin, end []byte
	size       int64
}

func (f sparse) ReadAt(b []byte, at int64) (int, error) {
	clear(b)
	if at < int64(len(f.begin)) {
		copy(b, f.begin[at:])
	}
	if from := f.size - int64(len(f.end)); at+int64(len(b)) > from {
		copy(b[max(0, from-at):], f.end[max(0, at-from):])
	}
	return int(min(int64(len(b)), f.size-at)), nil
}

// TestLargeWAV: a size of more than 2 GiB is one if a chunk follows there, and else "until the end". A size that no file
// can have is no length.
func TestLargeWAV(t *testing.T) {
	s := mono16
	s.dataSize = 3 << 30
	list := riffChunk("LIST", make([]byte, 9000))
	for _, c := range []struct {
		after []byte
		want  int64
	}{{list, 3 << 30}, {make([]byte, 9008), 3<<30 + 9008}} {
		begin := s.bytes(nil)
		f := sparse{begin, c.after, int64(len(begin)) + 3<<30 + int64(len(c.after))}
		d := testkit.Must(Open("input", f, f.size, &Notices{}))(t)
		if n := d.Format().Frames; n != c.want/2 || d.Format().Notice != "" {
			t.Errorf("%d frames, want %d; notice %q", n, c.want/2, d.Format().Notice)
		}
	}
	huge := wavShape{id: "RF64", tag: tagPCM, bits: 16, channels: 1, rate: SampleRate, dataSize: 0xFFFFFFFF,
		before: riffChunk("ds64", append(make([]byte, 8), append(binary.LittleEndian.AppendUint64(nil, 1<<62), make([]byte, 12)...)...))}.bytes(make([]float32, 16000))
	if d := mustDecode(t, "huge", huge, true, 999); d.format.Duration() <= 0 || strings.Contains(d.notices, "-") {
		t.Errorf("%v, %s", d.format.Duration(), d.notices)
	}
}

func BenchmarkDecodeWAV(b *testing.B) {
	benchmarkDecode(b, wavShape{tag: tagPCM, bits: 16, channels: 2, rate: 44100, dataSize: -1}.bytes(capturetest.Tone(SampleRate, 440, 20*44100)), 10)
}
