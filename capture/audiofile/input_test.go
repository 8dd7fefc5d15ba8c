package audiofile

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"hubbub/capture/capturetest"
	"hubbub/protocol/hint"
)

var errDisk = errors.New("input/output error")

// failingDisk cannot read its content from a byte on.
type failingDisk struct {
	*bytes.Reader
	from int64
}

func (f failingDisk) ReadAt(b []byte, at int64) (int, error) {
	if at >= f.from {
		return 0, errDisk
	}
	return f.Reader.ReadAt(b[:min(int64(len(b)), f.from-at)], at)
}

// A file that cannot be read is an error in every format: it may be intact.
func TestFailingDisk(t *testing.T) {
	x := capturetest.Tone(SampleRate, 440, 10*SampleRate)
	for name, file := range map[string][]byte{
		"wav":  wavShape{tag: tagPCM, rate: SampleRate, channels: 1, bits: 16, dataSize: -1}.bytes(x),
		"flac": flacBytes(t, x, SampleRate, 1, 16, true),
		"mp3":  mp3File(t, "stereo44.mp3"),
	} {
		for _, from := range []int{0, sniffLen, len(file) - len(file)/4} {
			if from >= len(file) {
				t.Fatalf("%s has %d bytes", name, len(file))
			}
			var n Notices
			d, err := Open(name, failingDisk{bytes.NewReader(file), int64(from)}, int64(len(file)), &n)
			for buffer := make([]float32, 1000); err == nil; {
				_, err = d.Read(buffer)
			}
			err = Named(name, err)
			if !errors.Is(err, errDisk) || errors.Is(err, io.EOF) || hint.Of(err) != "Check the disk." || len(n.All()) > 0 || strings.Contains(err.Error(), "decode") {
				t.Errorf("%s from byte %d on: %v, %q, notices %q", name, from, err, hint.Of(err), n.All())
			}
		}
	}
}
