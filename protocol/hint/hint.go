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

// Of returns the hint of an error of any package: that of the outermost error
// in the chain that has a method Hint() string. Without one it is "".
func Of(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}
