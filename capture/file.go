package capture

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"hubbub/protocol/hint"
)

// isContext reports whether err is the end of a context.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// decoded is a source with a decoder: a file, or the demo.
type decoded struct {
	info  Info
	conv  *converter
	notes *notes
	file  io.Closer
}

func (d *decoded) Info() Info        { return d.info }
func (d *decoded) notices() []string { return d.notes.all() }

func (d *decoded) Read(ctx context.Context, dst []float32) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n, err := d.conv.read(dst)
	if err != nil && !errors.Is(err, io.EOF) {
		err = named(d.info.Name, err)
	}
	return n, err
}

func (d *decoded) Close() error {
	if d.file == nil {
		return nil
	}
	f := d.file
	d.file = nil
	return f.Close()
}

// named prefixes an error with the input's name and keeps its hint.
func named(name string, err error) error {
	return fail(cmp.Or(hint.Of(err), damagedHint), "%s: %w", name, err)
}

// describe adds the format of a converter's input to info.
func describe(info Info, c *converter) Info {
	d := c.dec
	f := d.format()
	info.Tracks = len(c.mixer.tracks)
	info.Rate, info.Channels, info.Duration, info.Notice = f.rate, f.channels, f.duration(), f.notice
	if m, ok := d.(*mp3Decoder); ok {
		info.Channels = m.channels()
	}
	return info
}

// openFile opens a file of any supported format. A path that is not a regular
// file, such as a named pipe, is read like standard input.
func openFile(ctx context.Context, path string, selected Channels) (Source, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail("Check the name. `hubbub live --help` lists the possible inputs.", "no such file: %s", path)
	case errors.Is(err, fs.ErrPermission):
		return nil, fail("Allow this user to read it.", "no permission to read %s", path)
	case err != nil:
		return nil, fail("Check the name.", "cannot open %s: %w", path, err)
	case st.IsDir():
		return nil, fail("Choose a file in it.", "%s is a folder", path)
	case !st.Mode().IsRegular():
		return openPipe(ctx, path, selected)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fail("Allow this user to read it.", "cannot open %s: %w", path, err)
	}
	src, err := openAt(ctx, f, st.Size(), path, selected)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	src.file = f
	return src, nil
}

// openAt opens an input of known size.
func openAt(ctx context.Context, f io.ReaderAt, size int64, path string, selected Channels) (*decoded, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, fail("Choose a recording that contains audio.", "%s is empty", path)
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, size), sniffLen)
	head, err := r.Peek(sniffLen)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fail("Check the disk.", "cannot read %s: %w", path, err)
	}
	n := &notes{}
	dec, err := openDecoder(path, &counter{r: r, at: f}, head, size, n)
	if err != nil {
		return nil, err
	}
	conv, err := newConverter(dec, selected, n)
	if err != nil {
		return nil, named(path, err)
	}
	return &decoded{info: describe(Info{Kind: File, Name: path, Base: baseName(path)}, conv), conv: conv, notes: n}, nil
}
