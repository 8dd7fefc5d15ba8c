// Command shot takes a picture of a terminal program: it runs the program in
// a tmux of its own, waits until the screen shows what is wanted, and draws
// what tmux sees as a PNG. The pictures of the README come from it.
//
//	shot -o docs/screen.png -size 120x34 -until '0:4[0-9] /' -- bin/hubbub live
//	tmux capture-pane -e -p | shot -o screen.png -size 80x24
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image/png"
	"io"
	"os"
	"os/signal"
	"regexp"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "shot:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader) error {
	fs := flag.NewFlagSet("shot", flag.ContinueOnError)
	out := fs.String("o", "screen.png", "file to write")
	size := fs.String("size", "80x24", "columns x rows")
	light := fs.Bool("light", false, "a light terminal")
	scale := fs.Int("scale", 2, "pixels for each of the 10x20 points of a cell")
	until := fs.String("until", "", "take the picture when the screen matches this expression")
	after := fs.Duration("after", 0, "then wait this long")
	keys := fs.String("keys", "", "then send these keys, as tmux names them, separated by blanks")
	timeout := fs.Duration("timeout", 2*time.Minute, "give up after")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var w, h int
	if n, err := fmt.Sscanf(*size, "%dx%d", &w, &h); n != 2 || err != nil || w < 1 || h < 1 || w > 1000 || h > 1000 {
		return fmt.Errorf("size %q is not COLUMNSxROWS", *size)
	}
	if *scale < 1 || *scale > 8 {
		return fmt.Errorf("scale %d is not 1 to 8", *scale)
	}
	want, err := regexp.Compile(*until)
	if err != nil {
		return fmt.Errorf("-until: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()

	var text []byte
	if fs.NArg() == 0 {
		text, err = io.ReadAll(stdin)
	} else {
		s := scene{width: w, height: h, light: *light, until: want, after: *after, keys: *keys}
		text, err = s.capture(ctx, fs.Args())
	}
	if err != nil {
		return err
	}
	colours := darkTerminal
	if *light {
		colours = lightTerminal
	}
	p, err := newPainter(*scale, colours)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	if err := enc.Encode(&b, p.paint(parse(string(text), w, h))); err != nil {
		return err
	}
	return os.WriteFile(*out, b.Bytes(), 0o644)
}
