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

// allowedImports lists, by package, what it may import of this module beside
// itself and package protocol/hint; ARCHITECTURE.md has the same table. An entry covers
// the packages below it that have no entry of their own.
var allowedImports = map[string][]string{
	"cmd": {"cmd/hubbub/internal/crash", "cmd/hubbub/internal/load", "cmd/hubbub/internal/page", "cmd/hubbub/internal/recording", "cmd/hubbub/internal/session", "cmd/hubbub/internal/voices",
		"capture", "tui", "tui/display", "tui/plain", "protocol", "protocol/client", "protocol/trace",
		"protocol/check", "protocol/conform", "protocol/export", "localserver", "localserver/apikeys", "localserver/faults", "localserver/store", "localserver/store/backup", "localserver/store/datafolder", "localserver/stream", "localserver/engine", "protocol/words"},
	"cmd/hubbub/internal/crash":     {},
	"cmd/hubbub/internal/voices":    {"protocol", "localserver/engine"},
	"cmd/hubbub/internal/load":      {"protocol", "protocol/check", "protocol/client"},
	"cmd/hubbub/internal/page":      {"cmd/hubbub/internal/crash", "protocol", "protocol/export"},
	"cmd/hubbub/internal/recording": {"cmd/hubbub/internal/crash", "capture", "protocol", "protocol/export"},
	"cmd/hubbub/internal/session": {"cmd/hubbub/internal/crash", "cmd/hubbub/internal/page", "cmd/hubbub/internal/recording", "capture", "tui", "tui/canvas", "tui/display", "tui/plain",
		"protocol", "protocol/client", "protocol/export", "protocol/trace", "protocol/words"},
	"tui":                          {"tui/canvas", "tui/display", "tui/plain", "tui/wire", "protocol", "protocol/trace"},
	"tui/plain":                    {"tui/display", "tui/wire", "protocol", "protocol/trace"},
	screens:                        {"tui/display", "protocol", "protocol/trace"},
	"tui/wire":                     {"tui/canvas", "tui/display", "protocol", "protocol/trace"},
	"tui/display":                  {"tui/canvas", "protocol", "protocol/trace"},
	"tui/canvas":                   {},
	"capture":                      {"capture/program"},
	"capture/program":              {},
	soundServer:                    {},
	"protocol":                     {},
	"protocol/trace":               {"protocol"},
	"protocol/client":              {"protocol", "protocol/trace"},
	"protocol/check":               {"protocol", "protocol/client", "protocol/trace"},
	"protocol/conform":             {"protocol", "protocol/client", "protocol/trace"},
	"protocol/export":              {"protocol"},
	fakeService:                    {"protocol"},
	"protocol/words":               {"protocol", "capture/program"},
	"localserver":                  {"protocol", "localserver/apikeys", "localserver/engine", "localserver/faults", "localserver/jobs", "localserver/outbound", "localserver/store", "localserver/store/backup", "localserver/store/datafolder", "localserver/stream", "protocol/words"},
	"localserver/outbound":         {},
	"localserver/jobs":             {"capture", "protocol", "localserver/engine", "localserver/outbound", "localserver/store", "localserver/stream", "protocol/words"},
	"localserver/apikeys":          {"localserver/store", "localserver/store/datafolder"},
	"localserver/faults":           {"protocol"},
	"localserver/store":            {"localserver/store/backup", "localserver/store/datafolder", "localserver/store/embedded"},
	"localserver/store/embedded":   {"localserver/store/datafolder"},
	"localserver/store/backup":     {"localserver/store/datafolder", "localserver/store/embedded"},
	"localserver/store/datafolder": {},
	"localserver/stream":           {"protocol", "localserver/engine", "localserver/store", "localserver/store/datafolder", "protocol/words"},
	"localserver/engine":           {},
	"protocol/hint":                {},
}

// These may be imported by any test, and by nothing else.
const (
	fakeService = "protocol/protocoltest"
	soundServer = "capture/capturetest"
	screens     = "tui/tuitest"
)

// entry is the entry of allowedImports that covers pkg: the longest path.
func entry(pkg string) string {
	best := ""
	for e := range allowedImports {
		if (pkg == e || strings.HasPrefix(pkg, e+"/")) && len(e) > len(best) {
			best = e
		}
	}
	return best
}

// TestImports reads the imports of every Go file of the module, tests included,
// and fails for one that the table does not allow.
func TestImports(t *testing.T) {
	t.Parallel()
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
		from := entry(filepath.ToSlash(filepath.Dir(rel)))
		if from == "" {
			t.Errorf("the table has no entry for the package of %s", rel)
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
			if (ours == fakeService || ours == soundServer || ours == screens) && strings.HasSuffix(path, "_test.go") {
				continue
			}
			if to := entry(ours); to != from && to != "protocol/hint" && !slices.Contains(allowedImports[from], to) {
				t.Errorf("%s imports %s: %s may not import %s", rel, p, from, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Fatalf("only %d Go files found: the test looks in the wrong folder", files)
	}
}
