// Package enginetest has the demo conversation for tests of the engine.
package enginetest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/mewkiz/flac"
)

// Demo is the demo conversation, four speakers in 79 s: 16 kHz, mono.
func Demo(t testing.TB) (samples []float32) {
	t.Helper()
	path := "capture/demo/demo.flac"
	for range 4 { // a test runs in the folder of its package
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Join("..", path)
	}
	s, err := flac.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for {
		frame, err := s.ParseNext()
		if errors.Is(err, io.EOF) {
			return samples
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range frame.Subframes[0].Samples {
			samples = append(samples, float32(v)/(1<<15))
		}
	}
}
