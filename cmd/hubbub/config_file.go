package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// configEnv names another settings file than the one of the user's
// configuration folder.
const configEnv = "HUBBUB_CONFIG"

// settingsFile is the settings file as it was read.
type settingsFile struct {
	path   string // "" = this machine has no place for one
	exists bool
	values map[string]fileEntry // by the setting's name
	names  []fileEntry          // in the order of the file
}

// fileEntry is one value of the file, as the command line would spell it.
type fileEntry struct {
	key, value string
	line       int
}

// settingsPath is where the settings file is, whether there is one or not.
func settingsPath() string {
	if path := os.Getenv(configEnv); path != "" {
		return path
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "hubbub", "config.toml")
}

// readSettings reads the settings file. Without one, nothing is set; but a file
// that HUBBUB_CONFIG names must be there. Nothing in it is passed over: what is
// not known, or not as it must be, is an error with its line.
func readSettings() (*settingsFile, error) {
	f := &settingsFile{path: settingsPath(), values: map[string]fileEntry{}}
	if f.path == "" {
		return f, nil
	}
	raw, err := os.ReadFile(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && os.Getenv(configEnv) == "":
		return f, nil
	case err != nil:
		return nil, &usageError{fmt.Sprintf("cannot read the settings: %v", err), "Make it readable, or leave " + configEnv + " unset."}
	}
	f.exists = true
	return f, f.parse(raw)
}

func (f *settingsFile) fail(line int, format string, args ...any) error {
	return &usageError{fmt.Sprintf("%s:%d: %s", f.path, line, fmt.Sprintf(format, args...)), "Change the line, or see `hubbub config --help` for what may be there."}
}

func (f *settingsFile) parse(raw []byte) error {
	var all map[string]any
	if err := toml.Unmarshal(raw, &all); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, _ := at.Position()
			return f.fail(line, "%s", strings.TrimPrefix(at.Error(), "toml: "))
		}
		return &usageError{fmt.Sprintf("%s: %v", f.path, err), "The file must be TOML (toml.io)."}
	}
	// The values by their places: only the parser knows lines.
	var p unstable.Parser
	p.Reset(raw)
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			var line int
			table, line = keyOf(&p, e)
			if e.Kind == unstable.ArrayTable || len(table) != 1 || table[0] != namesTable {
				return f.unknown(line, strings.Join(table, "."))
			}
		case unstable.KeyValue:
			key, line := keyOf(&p, e)
			if err := f.add(append(append([]string(nil), table...), key...), line, all); err != nil {
				return err
			}
		}
	}
	return p.Error()
}

// keyOf is the dotted key of a table or a value, and its line.
func keyOf(p *unstable.Parser, e *unstable.Node) (parts []string, line int) {
	for it := e.Key(); it.Next(); {
		parts = append(parts, string(it.Node().Data))
		line = p.Shape(it.Node().Raw).Start.Line
	}
	return parts, line
}

// add takes the value at a key.
func (f *settingsFile) add(key []string, line int, all map[string]any) error {
	value := any(all)
	for _, k := range key {
		m, _ := value.(map[string]any)
		value = m[k]
	}
	if key[0] == namesTable {
		if table, ok := value.(map[string]any); ok && len(key) == 1 { // names = { SPEAKER_00 = "Anna" }
			for k := range table {
				if err := f.add([]string{namesTable, k}, line, all); err != nil {
					return err
				}
			}
			return nil
		}
		name, ok := value.(string)
		if !ok || len(key) != 2 {
			return f.fail(line, "a name must be text, such as SPEAKER_00 = \"Anna\" in the table [names]")
		}
		f.names = append(f.names, fileEntry{key[1], name, line})
		return nil
	}
	name := strings.Join(key, ".")
	known := false
	for _, s := range settings {
		known = known || s.name == name
	}
	if !known {
		return f.unknown(line, name)
	}
	e := fileEntry{key: name, line: line}
	switch v := value.(type) {
	case string:
		e.value = v
	case bool:
		e.value = strconv.FormatBool(v)
	case int64:
		e.value = strconv.FormatInt(v, 10)
	case float64:
		e.value = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return f.fail(line, "%s must be text, a number, true or false", name)
	}
	f.values[name] = e
	return nil
}

// unknown refuses a key and names the one that was probably meant.
func (f *settingsFile) unknown(line int, name string) error {
	if strings.Contains(strings.ToLower(name), "key") {
		return &usageError{fmt.Sprintf("%s:%d: %q may not be in a file", f.path, line, name), "Keep the API key in the key ring: `hubbub config set-key URL`, or in HUBBUB_API_KEY."}
	}
	best, meant := 3, ""
	for _, s := range settings {
		if d := editDistance(name, s.name); d < best {
			best, meant = d, s.name
		}
	}
	if meant != "" {
		return f.fail(line, "there is no setting %q; did you mean %s?", name, meant)
	}
	return f.fail(line, "there is no setting %q", name)
}
