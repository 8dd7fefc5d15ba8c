package main

import (
	"github.com/spf13/cobra"

	"hubbub/cmd/hubbub/internal/page"
	"hubbub/cmd/hubbub/internal/session"
	"hubbub/cmd/hubbub/internal/settings"
	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/tui/canvas"
)

// displayFlags say how a session is displayed.
type displayFlags struct {
	options  session.DisplayOptions // those that need no conversion
	output   choice
	theme    choice
	page     string // address of the page for an audience; "" = none
	settings settings.Tables
}

// add offers these outputs, tui first.
func (f *displayFlags) add(cmd *cobra.Command, outputs ...string) {
	f.output, f.theme = choice{"", outputs}, choice{"auto", []string{"auto", "dark", "light", "contrast", "colour-blind"}}
	flags := cmd.Flags()
	f.output.add(cmd, "output", "o", "output `FORMAT`: "+session.OneOf(outputs)+" (default: tui on a terminal, else lines)")
	flags.BoolVar(&f.options.Accessible, "accessible", false, "append lines instead of redrawing the screen, for screen readers")
	flags.BoolVar(&f.options.Screen.ASCII, "ascii", false, "draw with ASCII characters only")
	f.theme.add(cmd, "theme", "", "`COLOURS`: dark, light, contrast for high contrast, colour-blind, or auto to ask the terminal")
	flags.BoolVar(&f.options.Screen.Mouse, "mouse", true, "react to clicks and the scroll wheel; --mouse=false leaves the mouse to the terminal")
	flags.Var((*nonEmpty)(&f.page), "page", "serve the session as a page for an audience at `ADDRESS`: PORT on this machine, or HOST:PORT")
}

// complete applies the settings and rejects flags that exclude each other.
func (f *displayFlags) complete(cmd *cobra.Command) (err error) {
	if f.settings, err = settings.Apply(cmd); err != nil {
		return err
	}
	if f.page != "" {
		address, err := page.ParseAddress(f.page)
		if err != nil {
			return usage.Error("--page: "+err.Error(), "Give a port of this machine, such as 8800, or HOST:PORT.")
		}
		f.page = address
	}
	if f.options.Accessible && f.output.value != "" && f.output.value != "tui" {
		return excludeEachOther(cmd, "accessible", "output", " "+f.output.value)
	}
	return nil
}

func (a *App) newDisplay(f displayFlags) (session.Display, error) {
	f.options.Output, f.options.Allowed = f.output.value, f.output.allowed
	f.options.Screen.Background, f.options.Screen.Keys = canvas.Background(f.theme.value), f.settings.Keys
	d, err := session.NewDisplay(
		session.Streams{Stdin: a.Stdin, Stdout: a.Stdout, Stderr: aboveProgress{a}, Interrupted: func() { a.interrupted.Store(true) }}, f.options)
	if err != nil {
		return nil, err
	}
	return session.OnPage(d, f.page), nil
}
