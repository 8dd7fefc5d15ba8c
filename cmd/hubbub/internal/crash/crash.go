// Package crash reports panics. A session ends in order after a panic that is caught
// (protocol/recovered), with exit code 1. A panic that is not caught, a fatal error
// of the runtime and SIGKILL are the crash monitor's: a second process that restores
// the terminal (monitor.go). Both write a report.
package crash

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// TestHook is called at the places of the program where tests make it panic.
var TestHook = func(place string) {}

// Report writes a report about an error that has a stack, of this package or
// of another one, and tells w where it is. program is the program's version.
func Report(w io.Writer, program string, err error) {
	var e interface{ Stack() []byte }
	if errors.As(err, &e) {
		report(w, program, append([]byte(err.Error()+"\n\n"), e.Stack()...))
	}
}

func report(w io.Writer, program string, trace []byte) {
	path, err := writeReport(program, trace)
	if err != nil {
		fmt.Fprintf(w, "The report could not be written: %v\n", err)
		return
	}
	fmt.Fprintf(w, "The report is %s; please send it in. What was recorded is readable.\n", path)
}

// writeReport writes a stack trace into the user's cache folder. Command line
// and environment are left out, because they may contain an API key.
func writeReport(program string, trace []byte) (path string, err error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "hubbub")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	now := time.Now()
	f, err := os.CreateTemp(dir, "crash-"+now.Format("20060102-150405")+"-*.txt")
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, "hubbub %s, %s, %s/%s\n%s\n\n%s", program, runtime.Version(), runtime.GOOS, runtime.GOARCH, now.Format(time.RFC3339), trace)
	return f.Name(), errors.Join(err, f.Close())
}
