package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
)

// defect is a panic that was caught: the session ends in order, with exit code
// 1, and a report is kept. Who catches none is ended by the runtime, with its
// own code 2; the watcher (crash.go) keeps that report.
type defect struct {
	value any
	stack []byte
}

func (d *defect) Error() string {
	return fmt.Sprintf("ended by a defect of its own: panic: %v", d.value)
}

// Stack is where it happened. Other rooms have errors of this kind, too.
func (d *defect) Stack() []byte { return d.stack }

// guarded runs f and turns a panic into its error.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &defect{v, debug.Stack()}
		}
	}()
	return f()
}

func isDefect(err error) bool {
	var d *defect
	return errors.As(err, &d)
}

// provoke is where tests make the program break.
var provoke = func(place string) {}

// reportDefect keeps a report of an error that knows where it happened, and
// says where the report is.
func reportDefect(w io.Writer, err error) {
	var d interface{ Stack() []byte }
	if !errors.As(err, &d) {
		return
	}
	path, failed := writeReport(append([]byte(err.Error()+"\n\n"), d.Stack()...))
	if failed != nil {
		fmt.Fprintf(w, "The report could not be written: %v\n", failed)
		return
	}
	fmt.Fprintf(w, "The report is %s; please send it in. What was recorded is readable.\n", path)
}
