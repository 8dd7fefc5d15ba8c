package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"hubbub/protocol/testkit"
)

// Every command that help lists has a manual page, every shell its completions, tables keep their columns, and two runs
// write the same bytes.
func TestManuals(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	write := func() map[string][]byte {
		dir := t.TempDir()
		root := newRoot(&App{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
		testkit.NoError(t, writeManuals(root, dir))
		files := map[string][]byte{}
		for _, f := range testkit.Files(t, dir, "*/*") {
			files[filepath.Base(f)] = testkit.Must(os.ReadFile(f))(t)
		}
		return files
	}
	files, again := write(), write()
	var expect func(c *cobra.Command)
	expect = func(c *cobra.Command) {
		if !c.IsAvailableCommand() {
			return
		}
		page := string(files[strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"])
		if !strings.Contains(page, ".SH SYNOPSIS") || !strings.Contains(page, `"Sep 2026"`) {
			t.Errorf("%s: page %q", c.CommandPath(), page)
		}
		for _, sub := range c.Commands() {
			expect(sub)
		}
	}
	expect(newRoot(&App{}))
	for _, page := range []string{"check", "config", "serve"} { // with a table that must not be filled
		if text, _, _ := strings.Cut(string(files["hubbub-"+page+".1"]), "\n.SH OPTIONS\n"); !strings.Contains(text, "\n.EX\n") {
			t.Errorf("the table of %s is filled: %s", page, text)
		}
	}
	for _, f := range []string{"hubbub.bash", "_hubbub", "hubbub.fish", "hubbub.ps1"} {
		if !bytes.Contains(files[f], []byte("hubbub")) {
			t.Errorf("no completions in %s", f)
		}
	}
	for name, text := range files {
		if !bytes.Equal(text, again[name]) {
			t.Errorf("%s differs in a second run", name)
		}
	}
	if _, there := files["hubbub-man.1"]; there {
		t.Error("a hidden command has a page")
	}
}
