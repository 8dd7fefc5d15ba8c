//go:build !unix

package session

import (
	"io"
	"os"

	"golang.org/x/term"
)

// lineEditor exists on Unix only; elsewhere the terminal edits lines by itself.
type lineEditor struct{ terminal *term.Terminal }

// typed is standard input for cancelreader, which it does not recognise: it would read the console, also
// in the place of a pipe, by character, without an echo, and take ctrl+c for a character.
func typed(stdin *os.File) io.Reader {
	return struct{ io.Reader }{stdin}
}

func editLines(*os.File, io.Reader, *os.File) *lineEditor { return nil }

func (*lineEditor) close() {}

// suspendable is about ctrl+z, which exists on Unix only.
func suspendable() bool { return false }
