//go:build !unix

package session

import (
	"io"
	"os"

	"golang.org/x/term"
)

// lineEditor exists on Unix only; elsewhere the terminal edits lines by itself.
type lineEditor struct{ terminal *term.Terminal }

// lineInput is standard input for cancelreader, as a reader of another type than a file. For a file
// it would read the console instead, also in the place of a pipe: by character, without an echo, and
// with ctrl+c as a character.
func lineInput(stdin *os.File) io.Reader {
	return struct{ io.Reader }{stdin}
}

func editLines(*os.File, io.Reader, *os.File) *lineEditor { return nil }

func (*lineEditor) close() {}

// suspendable and continued are about programs that are stopped, which exist on Unix only.
func suspendable() bool { return false }

func continued() (signals chan os.Signal, end func()) { return nil, func() {} }
