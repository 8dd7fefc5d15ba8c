package audiofile

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"hubbub/capture/capturetest"
	"hubbub/protocol/hint"
)

// survive opens and reads any input: it may fail, but must not panic or continue
// forever, and each error has a hint.
func survive(t *testing.T, b []byte) {
	for _, stream := range []bool{false, true} {
		dec, err := open(b, stream, &Notices{})
		buf := []float32(nil)
		if err == nil {
			buf = make([]float32, 1024*dec.Format().Channels)
		}
		for total := 0; err == nil && total < 4<<20; {
			var n int
			if n, err = dec.Read(buf); n == 0 && err == nil {
				t.Fatal("nothing, and no error")
			}
			total += n
		}
		if err != nil && !errors.Is(err, io.EOF) && hint.Of(err) == "" {
			t.Fatalf("no hint: %v", err)
		}
	}
}

func FuzzWAV(f *testing.F) {
	x := capturetest.Tone(SampleRate, 440, 300)
	for _, s := range []wavShape{
		{tag: tagPCM, bits: 16, channels: 1, rate: 8000, dataSize: -1},
		{tag: tagPCM, bits: 24, channels: 2, rate: 44100, dataSize: 0, extensible: true},
		{tag: tagFloat, bits: 64, channels: 3, rate: 96000, dataSize: 0xFFFFFFFF},
		{id: "RF64", tag: tagPCM, bits: 8, channels: 1, rate: 16000, dataSize: 0xFFFFFFFF, before: riffChunk("ds64", make([]byte, 28))},
	} {
		f.Add(s.bytes(x))
	}
	f.Add([]byte("RIFF\x00\x00\x00\x00WAVE"))
	f.Fuzz(survive)
}

func FuzzFLAC(f *testing.F) {
	b := flacBytes(f, capturetest.Tone(SampleRate, 440, 1500), 8000, 1, 16, true)
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add(flacBytes(f, capturetest.Tone(SampleRate, 440, 300), 44100, 2, 24, false))
	f.Add(append([]byte("ID3\x04\x00\x00\x00\x00\x00\x00"), b...))
	f.Fuzz(survive)
}

func FuzzMP3(f *testing.F) {
	for _, name := range []string{"stereo44.mp3", "mono22.mp3", "mono22-notag.mp3"} {
		b := mp3File(f, name)
		f.Add(b[:min(len(b), 2500)])
		f.Add(append([]byte("ID3\x04\x00\x00\x00\x00\x00\x00"), b[100:min(len(b), 2000)]...))
	}
	f.Fuzz(survive)
}

func FuzzRaw(f *testing.F) {
	raw, _ := binary.Append(nil, binary.LittleEndian, capturetest.Tone(SampleRate, 440, 100))
	f.Add(raw)
	f.Add([]byte("hello"))
	f.Add([]byte{0, 0, 0, 0, 1})
	f.Fuzz(survive)
}
