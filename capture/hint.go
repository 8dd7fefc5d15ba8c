package capture

import "fmt"

// hinted is an error with the next step. Callers find it with errors.As and an
// interface{ Hint() string }.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }
func (h *hinted) Hint() string  { return h.hint }

// fail returns an error that says what happened, with the next step as its hint.
func fail(hint, format string, args ...any) error {
	return &hinted{fmt.Errorf(format, args...), hint}
}
