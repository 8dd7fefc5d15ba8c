package recording

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"hubbub/protocol"
	"hubbub/protocol/atomicfile"
	"hubbub/protocol/export"
	"hubbub/protocol/hint"
)

// embedLimit and embedBytes are the longest audio, in seconds, and the largest file that an
// exported page contains by default. 15 minutes of a recording make a page of 38 MB.
const (
	embedLimit = 15 * 60
	embedBytes = 64 << 20
)

// Content is what an export contains: that of a recording, or of a session that
// is running.
type Content struct {
	Info        export.Info // without Audio
	Turns       []protocol.Turn
	Annotations protocol.Annotations
	Audio       string // path of a file that browsers play; "" = there is none
}

// Content is the whole recording with the given names and bookmarks.
func (r *Recording) Content(annotations protocol.Annotations) Content {
	return Content{
		Info:  export.Info{Name: r.Info.Name, Title: r.Title(), Started: r.Info.Started, Length: r.Length, Gaps: r.Info.Gaps},
		Turns: r.Turns(), Annotations: annotations, Audio: r.Audio,
	}
}

// Document is the content, ready to be written into the folder dir. audio is
// where the page finds its audio: "embed", "beside" (a link), "none", or "auto":
// embedded up to 15 minutes and 64 MiB.
func (c Content) Document(dir, audio string) *export.Document {
	info := c.Info
	if audio == "auto" {
		audio = "embed"
		if st, err := os.Stat(c.Audio); info.Length > embedLimit || err == nil && st.Size() > embedBytes {
			audio = "beside"
		}
	}
	switch {
	case c.Audio == "" || audio == "none":
	case audio == "embed":
		info.Audio = &export.Audio{Path: c.Audio}
	default:
		info.Audio = &export.Audio{URL: relative(dir, c.Audio)}
	}
	return export.New(info, c.Turns, c.Annotations)
}

// relative is the path of a file from a folder. Where there is none, as between
// two drives, the file is expected in the folder.
func relative(dir, file string) string {
	from, err1 := filepath.Abs(dir)
	to, err2 := filepath.Abs(file)
	if rel, err := filepath.Rel(from, to); errors.Join(err, err1, err2) == nil {
		return rel
	}
	return filepath.Base(file)
}

// Export writes all formats into a new folder in dir, and returns one line that
// says where they are. It replaces nothing: a display has no one to ask.
func (c Content) Export(dir string) (string, error) {
	to, err := Numbered(filepath.Join(dir, "export"), "", func(to string) error { return os.Mkdir(to, 0o777) })
	if err != nil {
		return "", fmt.Errorf("cannot export: %w", err)
	}
	d := c.Document(to, "auto")
	for _, f := range export.Formats() {
		if err := WriteExport(filepath.Join(to, f.File()), f, d, false); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("exported %d files into %s", len(export.Formats()), to), nil
}

// Numbered creates NAME.EXTENSION, or NAME-2.EXTENSION and so on, the first that does not exist, and returns its
// name. The error of create for one that exists is fs.ErrExist.
func Numbered(name, extension string, create func(name string) error) (string, error) {
	for n := 1; ; n++ {
		numbered := name + extension
		if n > 1 {
			numbered = fmt.Sprintf("%s-%d%s", name, n, extension)
		}
		if err := create(numbered); !errors.Is(err, fs.ErrExist) || n == 999 {
			return numbered, err
		}
	}
}

// WriteExport writes one file, or nothing. Without replace it is an error when the file exists.
func WriteExport(path string, f export.Format, d *export.Document, replace bool) error {
	write := func(w io.Writer) error { return export.Write(w, f, d) }
	if replace {
		return ExportError(atomicfile.Replace(path, 0o666, write))
	}
	return ExportError(atomicfile.Write(path, 0o666, false, write))
}

// CheckExport is the error that WriteExport would have, with replace, in a folder that takes no files.
func CheckExport(path string) error { return ExportError(atomicfile.CheckReplace(path)) }

// ExportError says that an export failed; nil for nil.
func ExportError(err error) error {
	if err == nil {
		return nil
	}
	return hint.Add(fmt.Errorf("cannot export: %w", err), "Choose another place with --to.")
}
