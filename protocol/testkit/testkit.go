// Package testkit is what the tests of all packages share: checks of errors, values and goroutines,
// waiting, processes, a buffer for the output of goroutines and processes, and small disks.
package testkit

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// T is a test, a benchmark, a fuzz target or a property of rapid.
type T interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Timeout is how long a test waits for what must happen. A busy machine may need
// some of it, a passing test none.
const Timeout = time.Minute

// Run runs the tests of a package and returns the exit code for it. No goroutine may be left at
// their end. A busy machine may need longer for that than goleak waits, and what fails here is not
// run again.
func Run(m *testing.M) (code int) {
	if code = m.Run(); code != 0 {
		return code
	}
	killStarted()
	var left error
	for begin := time.Now(); time.Since(begin) < Timeout; {
		if left = goleak.Find(); left == nil {
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, left)
	return 1
}

// Parallel is for TestMain of packages whose tests mostly wait: so many run at once. The
// command line may set another number.
func Parallel(tests int) { _ = flag.Set("test.parallel", strconv.Itoa(tests)) }

// NoProxy is for TestMain of packages whose tests ask for hosts that do not exist: the proxy of whoever runs the tests would
// be asked instead.
func NoProxy() {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		_ = errors.Join(os.Unsetenv(name), os.Unsetenv(strings.ToLower(name)))
	}
}

// NoError ends the test if there is an error.
func NoError(t T, err error) {
	if err != nil {
		t.Helper() // here, because it takes time that benchmarks would measure
		t.Fatal(err)
	}
}

// Must is the value of a call, and ends the test if the call has failed: file := Must(os.Open(path))(t).
func Must[V any](value V, err error) func(t T) V {
	return func(t T) V {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return value
	}
}

// R is a test that can report a failure and go on.
type R interface {
	T
	Errorf(format string, args ...any)
}

// Equal reports a value that is not the wanted one. about says what it is of.
func Equal[V comparable](t R, got, want V, about ...any) {
	if got == want {
		return
	}
	t.Helper()
	format := "%s%v, want %v"
	if _, text := any(got).(string); text {
		format = "%s%q, want %q"
	}
	t.Errorf(format, prefix(about), got, want)
}

// EqualSlices is Equal for slices.
func EqualSlices[S ~[]V, V comparable](t R, got, want S, about ...any) {
	if slices.Equal(got, want) {
		return
	}
	t.Helper()
	format := "%s%+v, want %+v"
	if _, text := any(got).([]string); text {
		format = "%s%q, want %q"
	}
	t.Errorf(format, prefix(about), got, want)
}

// Contains reports a text that lacks a part.
func Contains(t R, text, part string, about ...any) {
	if strings.Contains(text, part) {
		return
	}
	t.Helper()
	format := "%s%q is not in %q"
	if strings.Contains(text, "\n") {
		format = "%s%q is not in\n%s"
	}
	t.Errorf(format, prefix(about), part, text)
}

func prefix(about []any) string {
	if len(about) == 0 {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintln(about...), "\n") + ": "
}

// HasMode ends the test if a file or folder has other permissions. Windows has none.
func HasMode(t T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	NoError(t, err)
	if got := info.Mode().Perm(); got != want && runtime.GOOS != "windows" {
		t.Fatalf("%s has the mode %v", path, got)
	}
}

// Eventually waits until something is so.
func Eventually(t T, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); {
		waited := time.Since(begin)
		if waited > Timeout {
			t.Fatalf("%s: not within %v", what, Timeout)
		}
		time.Sleep(min(time.Millisecond+waited/10, 20*time.Millisecond))
	}
}

// Files are the files of a folder, or below it, that match a pattern. Those of filepath.Glob would
// be others where the path of the folder has one of the characters of patterns.
func Files(t T, dir, pattern string) []string {
	t.Helper()
	files, err := fs.Glob(os.DirFS(dir), pattern)
	NoError(t, err)
	for i, file := range files {
		files[i] = filepath.Join(dir, filepath.FromSlash(file))
	}
	return files
}

// ShortTempDir is a temporary folder whose path leaves space for that of a socket, which may have 104 bytes on some systems.
func ShortTempDir(t testing.TB) string {
	t.Helper()
	temp := os.TempDir()
	if len(temp) > 60 {
		temp = "/tmp"
	}
	dir, err := os.MkdirTemp(temp, "hubbub")
	NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Program writes a program. Meanwhile no process is started: it would have the file open
// for writing until it runs its own program, and Linux does not run such a file.
func Program(t T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	NoError(t, os.WriteFile(path, []byte(text), 0o700))
}

// Buffer is a bytes.Buffer for several goroutines.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write is that of io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is the text so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Logger logs into the buffer, at debug level.
func (b *Buffer) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
