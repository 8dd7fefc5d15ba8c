package audiofile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"hubbub/capture/capturetest"
	"hubbub/protocol/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// decoded is an input that was read to its end.
type decoded struct {
	format  Format
	samples []float32 // the mean of the channels
	notices string    // those of reading it
}

// open opens an input in memory, as a file or as a stream.
func open(b []byte, stream bool, n *Notices) (Decoder, error) {
	if stream {
		return OpenStream("input", bytes.NewReader(b), n)
	}
	return Open("input", bytes.NewReader(b), int64(len(b)), n)
}

// decode reads an input in memory in blocks of so many frames.
func decode(b []byte, stream bool, block int) (d decoded, err error) {
	n := &Notices{}
	dec, err := open(b, stream, n)
	if err != nil {
		return d, err
	}
	d.format = dec.Format()
	channels := d.format.Channels
	buf := make([]float32, block*channels)
	for {
		n, err := dec.Read(buf)
		if n%channels != 0 {
			return d, fmt.Errorf("%d samples of %d channels", n, channels)
		}
		for i := 0; i < n; i += channels {
			var sum float64
			for _, x := range buf[i : i+channels] {
				sum += float64(x)
			}
			d.samples = append(d.samples, float32(sum/float64(channels)))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return d, err
		}
	}
	d.notices = strings.Join(n.All(), "; ")
	return d, nil
}

// mustDecode is decode where the input is valid.
func mustDecode(t testing.TB, name string, b []byte, stream bool, block int) decoded {
	t.Helper()
	d, err := decode(b, stream, block)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

// rejected expects that an input in memory does not open.
func rejected(t *testing.T, name string, b []byte, stream bool, text string) {
	t.Helper()
	_, err := open(b, stream, &Notices{})
	capturetest.Rejected(t, name, err, text)
}

// benchmarkDecode decodes a file of so many seconds.
func benchmarkDecode(b *testing.B, file []byte, seconds float64) {
	b.ReportAllocs()
	for b.Loop() {
		dec, err := open(file, false, &Notices{})
		testkit.NoError(b, err)
		buf := make([]float32, 4096*dec.Format().Channels)
		for err == nil {
			_, err = dec.Read(buf)
		}
	}
	b.ReportMetric(seconds*float64(b.N)/b.Elapsed().Seconds(), "x-realtime")
}
