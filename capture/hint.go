package capture

import "fmt"

// hinted is an error that also says what to do next; found through errors.As
// with an interface{ Hint() string }.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }
func (h *hinted) Hint() string  { return h.hint }

// fail builds a hinted error: what happened, and what to do next.
func fail(hint, format string, args ...any) error {
	return &hinted{fmt.Errorf(format, args...), hint}
}
