package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"testing"

	"hubbub/capture/audiofile"
	"hubbub/capture/capturetest"
)

// FuzzSource: whatever an input contains, its samples at 16 kHz are numbers of a
// plausible size. Invalid float samples must not reach the resampler.
func FuzzSource(f *testing.F) {
	f.Add(rawFloats(capturetest.Tone(SampleRate, 440, 300)))
	wav := stereoWAV(44100, 300)
	f.Add(wav)
	float := bytes.Clone(wav)
	binary.LittleEndian.PutUint16(float[20:], 3)  // IEEE float
	binary.LittleEndian.PutUint16(float[32:], 8)  // bytes of a frame
	binary.LittleEndian.PutUint16(float[34:], 32) // bits of a sample
	copy(float[44:], rawFloats([]float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -math.MaxFloat32, 0.5}))
	f.Add(float)
	f.Fuzz(func(t *testing.T, b []byte) {
		n := &audiofile.Notices{}
		dec, err := audiofile.OpenStream("input", bytes.NewReader(b), n)
		if err != nil {
			return // audiofile's own tests check the error
		}
		src, err := newDecoded(Info{}, dec, Mix, n)
		if err != nil {
			return
		}
		buf := make([]float32, 4096)
		for total := 0; total < 4<<20; {
			n, err := src.Read(context.Background(), buf)
			for _, x := range buf[:n] {
				if !(x > -1e8 && x < 1e8) {
					t.Fatalf("sample %g", x)
				}
			}
			total += n
			if err != nil {
				return
			}
		}
	})
}
