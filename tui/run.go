package tui

import (
	"context"
	"errors"
)

// ErrInterrupted is what Run answers when the user left with ctrl+c; after q
// it answers nil.
var ErrInterrupted = errors.New("interrupted")

// Run shows the session until the user leaves or ctx ends, and leaves the
// terminal as it was. It installs no signal handlers: end ctx instead.
func Run(ctx context.Context, o Options) error {
	return errors.New("the screen is not built yet")
}
