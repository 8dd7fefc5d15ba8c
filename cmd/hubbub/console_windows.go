package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableEscapes has a console interpret escape sequences, which it prints as text for programs that
// do not ask for it.
func enableEscapes(file *os.File) {
	console, mode := windows.Handle(file.Fd()), uint32(0)
	if windows.GetConsoleMode(console, &mode) == nil {
		_ = windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	}
}
