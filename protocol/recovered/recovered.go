// Package recovered makes errors of panics.
package recovered

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Error is a panic that was caught.
type Error struct {
	text  string
	stack []byte
}

// New is the Error of a panic, for a deferred function that has recovered value. what says
// what failed.
func New(what string, value any) *Error {
	return &Error{fmt.Sprintf("%s: panic: %v", what, value), debug.Stack()}
}

func (e *Error) Error() string { return e.text }

// Stack is where the panic happened, as the runtime formats it.
func (e *Error) Stack() []byte { return e.stack }

// LogValue is the text with the stack.
func (e *Error) LogValue() slog.Value { return slog.StringValue(e.text + "\n" + string(e.stack)) }

// Attr is an error for a log, with the stack of a panic that it wraps, if it does.
func Attr(err error) slog.Attr {
	if e, ok := errors.AsType[*Error](err); ok {
		return slog.String("error", err.Error()+"\n"+string(e.stack))
	}
	return slog.Any("error", err)
}

// Guard runs f and returns its error, or an Error when it panics.
func Guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = New("internal error", v)
		}
	}()
	return f()
}

// Caught reports whether err is a panic that was caught.
func Caught(err error) bool {
	var e *Error
	return errors.As(err, &e)
}
