// Package hint attaches to an error what its reader can do about it. The
// program prints the error in one line and the hint in the next.
package hint

import (
	"errors"
	"fmt"
)

type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }
func (h *hinted) Hint() string  { return h.hint }

// Add returns err with a hint, or nil where err is nil.
func Add(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &hinted{err, hint}
}

// Errorf is fmt.Errorf with a hint.
func Errorf(hint, format string, args ...any) error {
	return &hinted{fmt.Errorf(format, args...), hint}
}

// Hinted is an error with a hint.
type Hinted interface {
	error
	Hint() string
}

// In returns the outermost error in the chain of err that has a hint, of any
// package; nil = none has.
func In(err error) Hinted {
	var h Hinted
	_ = errors.As(err, &h)
	return h
}

// Of returns the hint of the error that In returns; "" = none.
func Of(err error) string {
	if h := In(err); h != nil {
		return h.Hint()
	}
	return ""
}
