// Package enginetest has the demo conversation for tests of the engine.
package enginetest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/mewkiz/flac"
)

// Demo is the demo conversation, four speakers in 79 s: 16 kHz, mono.
func Demo(t testing.TB) []float32 {
	t.Helper()
	samples, err := decodeDemo()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(samples)
}

// decodeDemo decodes once for all tests of a package.
var decodeDemo = sync.OnceValues(func() (samples []float32, err error) {
	path := "capture/demo/demo.flac"
	for range 4 { // a test runs in the folder of its package
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Join("..", path)
	}
	s, err := flac.ParseFile(path)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for {
		frame, err := s.ParseNext()
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return nil, err
		}
		for _, v := range frame.Subframes[0].Samples {
			samples = append(samples, float32(v)/(1<<15))
		}
	}
})
