package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// row is the last two cells of a row in ARCHITECTURE.md's table of packages.
type row struct{ contains, imports string }

// packageTable reads the table of packages in ARCHITECTURE.md.
func packageTable(t *testing.T, file string) map[string]row {
	t.Helper()
	text := testkit.Must(os.ReadFile(file))(t)
	const head = "| layer | package | contains | may import from this module |\n|---|---|---|---|\n"
	_, table, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("ARCHITECTURE.md has no table that begins with\n%s", head)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]row{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			t.Fatalf("a row of the table has not four cells: %s", line)
		}
		rows[strings.Trim(cells[2], " `")] = row{cells[3], cells[4]}
	}
	return rows
}

// may reports whether the package of a row may import another one.
func (r row) may(pkg string) bool {
	name := strings.TrimPrefix(pkg, "cmd/hubbub/internal/") // as the table has it
	return strings.Contains(r.imports, "`"+name+"`") || strings.Contains(r.imports, "all packages")
}

// rowOf is the package that has the row for pkg: those of the engine have one row.
func rowOf(pkg string) string {
	const engine = "localserver/engine"
	if strings.HasPrefix(pkg, engine+"/") {
		return engine
	}
	return pkg
}

// TestImports reads the imports of every Go file of the module, tests included,
// and fails for one that the table of packages in ARCHITECTURE.md does not allow.
func TestImports(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	rows := packageTable(t, filepath.Join(root, "ARCHITECTURE.md"))
	found := map[string]bool{}
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
		from := rowOf(filepath.ToSlash(filepath.Dir(rel)))
		found[from] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range file.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			ours, ok := strings.CutPrefix(p, "hubbub/")
			to := rowOf(ours)
			if !ok || to == from || strings.Contains(rows[to].contains, "every package may import it") {
				continue
			}
			if strings.Contains(rows[to].contains, "only tests import it") {
				if !strings.HasSuffix(path, "_test.go") && !strings.Contains(rows[from].contains, "only tests import it") {
					t.Errorf("%s imports %s: only tests may import it", rel, p)
				}
			} else if !rows[from].may(to) {
				t.Errorf("%s imports %s: %s may not import %s", rel, p, from, to)
			}
		}
		return nil
	})
	testkit.NoError(t, err)
	for pkg := range found {
		if _, ok := rows[pkg]; !ok {
			t.Errorf("the table has no row for the package %s", pkg)
		}
	}
	for pkg := range rows {
		if !found[pkg] {
			t.Errorf("the table has a row for %s, which has no Go files", pkg)
		}
	}
}
