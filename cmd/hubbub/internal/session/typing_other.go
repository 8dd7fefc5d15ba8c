//go:build !unix

package session

import (
	"io"
	"os"

	"golang.org/x/term"
)

// lineEditor exists on Unix only; elsewhere the terminal edits lines by itself.
type lineEditor struct{ terminal *term.Terminal }

func editLines(*os.File, io.Reader, *os.File) *lineEditor { return nil }

func (*lineEditor) close() {}

// suspendable is about ctrl+z, which exists on Unix only.
func suspendable() bool { return false }
