package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows are the rooms and what each may import of ours; ARCHITECTURE.md
// draws them. A path stands for itself and everything below it, unless a
// longer one fits.
var arrows = map[string][]string{
	"cmd":                   {"cmd", "tui", "capture", "protocol", "protocol/conform", "localserver", "localserver/rehearsal", "localserver/store", "localserver/engine"},
	"tui":                   {"tui", "protocol"},
	"capture":               {"capture"},
	"protocol":              {"protocol"},
	"protocol/conform":      {"protocol/conform", "protocol"},
	"localserver":           {"localserver", "protocol", "localserver/engine", "localserver/rehearsal", "localserver/store"},
	"localserver/rehearsal": {"localserver/rehearsal", "protocol"},
	"localserver/store":     {"localserver/store"},
	"localserver/engine":    {"localserver/engine"},
}

// room is the longest path of arrows that pkg lies in.
func room(pkg string) string {
	best := ""
	for r := range arrows {
		if (pkg == r || strings.HasPrefix(pkg, r+"/")) && len(r) > len(best) {
			best = r
		}
	}
	return best
}

// TestArrows reads the imports of every Go file of the repo, tests included:
// nothing points against the direction of the house. Tests of a whole room may
// not look into another one either.
func TestArrows(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		from := room(pkg)
		if from == "" {
			t.Errorf("%s lies in no room of the house", rel)
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files++
		for _, imp := range file.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			ours, ok := strings.CutPrefix(p, "hubbub/")
			if !ok {
				continue
			}
			if to := room(ours); !slices.Contains(arrows[from], to) {
				t.Errorf("%s imports %s: %s may not reach into %s", rel, p, from, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Fatalf("only %d Go files seen: the test looks in the wrong place", files)
	}
}
