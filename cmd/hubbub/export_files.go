package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hubbub/protocol"
	"hubbub/protocol/export"
)

// embedLimit is how long audio may be to become part of an exported page, in
// seconds: 15 minutes are 38 MB there. A page refers to longer audio.
const embedLimit = 15 * 60

// exportSource is a session that can be exported.
type exportSource struct {
	info  export.Info // without audio
	turns []protocol.Turn
	notes protocol.Annotations
	audio string // path of the WAV file; "" = there is none
}

// source is a recording with these names and turns.
func (r *recorded) source(notes protocol.Annotations, turns []protocol.Turn) exportSource {
	return exportSource{
		info:  export.Info{Name: r.info.Name, Title: r.title(), Started: r.info.Started, Length: r.length},
		turns: turns, notes: notes, audio: r.audio,
	}
}

// document is the session ready to be written into dir. audio is one of
// auto, embed, beside, none.
func (s exportSource) document(dir, audio string) *export.Document {
	info := s.info
	if audio == "auto" {
		audio = "embed"
		if info.Length > embedLimit {
			audio = "beside"
		}
	}
	switch {
	case s.audio == "" || audio == "none":
	case audio == "embed":
		info.Audio = &export.Audio{Path: s.audio}
	default:
		info.Audio = &export.Audio{URL: relative(dir, s.audio)}
	}
	return export.New(info, s.turns, s.notes)
}

// relative is the way from a folder to a file; where there is none, as between
// two drives, the file is expected in the folder.
func relative(dir, file string) string {
	from, err1 := filepath.Abs(dir)
	to, err2 := filepath.Abs(file)
	if rel, err := filepath.Rel(from, to); errors.Join(err, err1, err2) == nil {
		return rel
	}
	return filepath.Base(file)
}

// exportBeside writes all formats into a new folder in dir: it never writes
// over anything, and the display has nobody to ask.
func exportBeside(dir string, s exportSource) (string, error) {
	for n := 1; n < 1000; n++ {
		name := "export"
		if n > 1 {
			name = fmt.Sprintf("export-%d", n)
		}
		to := filepath.Join(dir, name)
		switch err := os.Mkdir(to, 0o777); {
		case errors.Is(err, fs.ErrExist):
			continue
		case err != nil:
			return "", fmt.Errorf("cannot export: %w", err)
		}
		d := s.document(to, "auto")
		for _, f := range export.Formats() {
			if err := writeExport(filepath.Join(to, f.File()), f, d, false); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("exported %s into %s", strings.Join(export.Words(), ", "), to), nil
	}
	return "", fmt.Errorf("cannot export: %s has too many exports already", dir)
}

// writeExport writes one file. Without force there must be none; a file that
// cannot be finished is taken away again.
func writeExport(path string, f export.Format, d *export.Document, force bool) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return exportError(err)
	}
	defer os.Remove(temp.Name())
	err = export.Write(temp, f, d)
	if err = errors.Join(err, temp.Chmod(0o644), temp.Close()); err != nil {
		return exportError(err)
	}
	if force {
		return exportError(os.Rename(temp.Name(), path))
	}
	// A link fails where something is already, in one step; not all file
	// systems have links.
	if err := os.Link(temp.Name(), path); err == nil || errors.Is(err, fs.ErrExist) {
		return exportError(err)
	}
	if exists(path) {
		return exportError(fmt.Errorf("%s: %w", path, fs.ErrExist))
	}
	return exportError(os.Rename(temp.Name(), path))
}

func exportError(err error) error {
	if err == nil {
		return nil
	}
	return &failure{fmt.Errorf("cannot export: %w", err), "Choose another place with --to."}
}

// mayReplace asks about files that are there already: on a terminal its user,
// elsewhere nobody, and the answer is no.
func (a *App) mayReplace(paths []string) error {
	var there []string
	for _, p := range paths {
		if _, err := os.Lstat(p); err == nil {
			there = append(there, p)
		}
	}
	if len(there) == 0 {
		return nil
	}
	what := there[0] + " exists"
	if len(there) > 1 {
		what = fmt.Sprintf("%s and %d more exist", there[0], len(there)-1)
	}
	refused := &failure{fmt.Errorf("%s already; nothing was written", what), "Write over with --force, or choose another place with --to."}
	if !isTerminal(a.Stdin) || !isTerminal(a.Stderr) {
		return refused
	}
	fmt.Fprintf(a.Stderr, "%s. Write over? [y/N] ", what)
	answer, _ := bufio.NewReader(a.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return refused
}
