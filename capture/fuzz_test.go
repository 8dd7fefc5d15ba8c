package capture

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"hubbub/protocol/hint"
)

// openBytes opens an input in memory, as a file or as a pipe.
func openBytes(b []byte, pipe bool) (Source, error) {
	if !pipe {
		return openAt(context.Background(), bytes.NewReader(b), int64(len(b)), "input", Mix)
	}
	// Without a pump, whose goroutine is not tested here.
	n := &notes{}
	r := bufio.NewReaderSize(bytes.NewReader(b), sniffLen)
	_, _ = r.Peek(sniffRaw)
	head, _ := r.Peek(r.Buffered())
	dec, err := openStreamDecoder("input", r, head, n)
	if err != nil {
		return nil, err
	}
	conv, err := newConverter(dec, Mix, n)
	if err != nil {
		return nil, err
	}
	return &decoded{info: describe(Info{Name: "input"}, conv), conv: conv, notes: n}, nil
}

// survive opens and reads any input: it may fail, but must not panic, return
// samples that are not numbers, or continue forever.
func survive(t *testing.T, b []byte) {
	for _, pipe := range []bool{false, true} {
		src, err := openBytes(b, pipe)
		if err != nil {
			if hint.Of(err) == "" {
				t.Fatalf("no hint: %v", err)
			}
			continue
		}
		buf := make([]float32, 4096)
		for total := 0; total < 4<<20; {
			n, err := src.Read(context.Background(), buf)
			for _, x := range buf[:n] {
				if !(x > -1e8 && x < 1e8) {
					t.Fatalf("a sample is %g", x)
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				if hint.Of(err) == "" {
					t.Fatalf("no hint: %v", err)
				}
				break
			}
			if n == 0 {
				t.Fatal("nothing, and no error")
			}
			total += n
		}
		_ = src.Close()
	}
}

func FuzzWAV(f *testing.F) {
	x := tone(8000, 440, 300)
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
	b := flacBytes(f, tone(8000, 440, 1500), 8000, 1, 16, true)
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add(flacBytes(f, tone(8000, 440, 300), 44100, 2, 24, false))
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
	f.Add(rawFloats(tone(SampleRate, 440, 100)))
	f.Add([]byte("hello"))
	f.Add([]byte{0, 0, 0, 0, 1})
	f.Fuzz(survive)
}
