package capture

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"hubbub/protocol/testkit"
)

func TestMain(m *testing.M) {
	if f, ok := children[os.Getenv(asChild)]; ok {
		f()
		os.Exit(0)
	}
	os.Exit(testkit.Run(m))
}

// asChild is the environment variable that makes the test binary run one of
// children instead of the tests, for tests that need their own process.
const asChild = "HUBBUB_CAPTURE_CHILD"

var children = map[string]func(){}

// readAll reads a source in blocks of the given size to its end.
func readAll(t testing.TB, src Source, block int) []float32 {
	t.Helper()
	return testkit.Must(drain(src, block))(t)
}

func drain(src Source, block int) ([]float32, error) {
	var all []float32
	for buf := make([]float32, block); ; {
		n, err := src.Read(context.Background(), buf)
		all = append(all, buf[:n]...)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

func openPath(t testing.TB, path string) (Source, error) {
	t.Helper()
	src, err := Open(context.Background(), Spec{Input: path})
	if err == nil {
		t.Cleanup(func() { _ = src.Close() })
	}
	return src, err
}

// write makes a file for a test.
func write(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	testkit.NoError(t, os.WriteFile(path, b, 0o666))
	return path
}
