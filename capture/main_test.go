package capture

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if f, ok := children[os.Getenv(asChild)]; ok {
		f()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// asChild is the environment variable that makes the test binary run one of
// children instead of the tests, for tests that need their own process.
const asChild = "HUBBUB_CAPTURE_CHILD"

var children = map[string]func(){}

// readAll reads a source in blocks of the given size to its end.
func readAll(t testing.TB, src Source, block int) []float32 {
	t.Helper()
	all, err := drain(src, block)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func drain(src Source, block int) ([]float32, error) {
	var all []float32
	buf := make([]float32, block)
	for {
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

// tone is a sine of amplitude 0.5.
func tone(rate int, freq float64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(0.5 * math.Sin(2*math.Pi*freq*float64(i)/float64(rate)))
	}
	return x
}

// power is the mean square of the samples at one frequency and at all others,
// by least squares for a sine and a cosine.
func power(x []float32, rate int, freq float64) (at, rest float64) {
	var ss, cc, sc, xs, xc, xx float64
	for i, v := range x {
		s, c := math.Sincos(2 * math.Pi * freq * float64(i) / float64(rate))
		ss += s * s
		cc += c * c
		sc += s * c
		xs += float64(v) * s
		xc += float64(v) * c
		xx += float64(v) * float64(v)
	}
	det := ss*cc - sc*sc
	a, b := (xs*cc-xc*sc)/det, (xc*ss-xs*sc)/det
	fit := a*xs + b*xc
	n := float64(len(x))
	return fit / n, math.Max(0, xx-fit) / n
}

func db(ratio float64) float64 { return 10 * math.Log10(ratio) }

// write makes a file for a test.
func write(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
