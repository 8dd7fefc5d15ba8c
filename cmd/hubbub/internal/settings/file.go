package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/tui"
)

// pathEnv names another settings file than the one in the user's configuration
// folder.
const pathEnv = "HUBBUB_CONFIG"

// namesTable is the table of the settings file that maps labels to names,
// keysTable the one that gives keys to commands.
const (
	namesTable = "names"
	keysTable  = "keys"
)

// File is the content of the settings file.
type File struct {
	Path   string // "" = there is no configuration folder that this user can look into
	Exists bool
	values map[string]fileEntry // by the setting's name
	names  []fileEntry          // in the order of the file
	keys   []keyEntry           // in the order of the file
}

// keyEntry is a line of a table of keys.
type keyEntry struct {
	tui.KeySetting
	line int
}

// fileEntry is one value of the file, as the command line would spell it.
type fileEntry struct {
	key, value string
	line       int
}

// filePath is the path of the settings file, whether it exists or not.
func filePath() string {
	if path := os.Getenv(pathEnv); path != "" {
		return path
	}
	dir, err := os.UserConfigDir()
	if err == nil {
		_, err = os.Stat(dir)
	}
	// HOME may be /dev/null, or the folder of another user.
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return filepath.Join(dir, "hubbub", "config.toml")
}

// Read reads the settings file. It need not exist, unless HUBBUB_CONFIG names it.
// An unknown key or a value of a wrong type is an error with its line.
func Read() (*File, error) {
	f := &File{Path: filePath(), values: map[string]fileEntry{}}
	if f.Path == "" {
		return f, nil
	}
	raw, err := os.ReadFile(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && os.Getenv(pathEnv) == "":
		return f, nil
	case err != nil:
		fix := "Make it readable, or move it away."
		if os.Getenv(pathEnv) != "" {
			fix = "Make it readable, or leave " + pathEnv + " unset."
		}
		err = fmt.Errorf("cannot read the settings: %w", err)
		if errors.Is(err, fs.ErrNotExist) { // the variable is wrong
			return nil, usage.Error(err.Error(), fix)
		}
		return nil, hint.Add(err, fix)
	}
	f.Exists = true
	return f, f.parse(raw)
}

func (f *File) fail(line int, format string, args ...any) error {
	return usage.Error(f.origin(line)+": "+fmt.Sprintf(format, args...), "Change the line; `hubbub config --help` lists the settings.")
}

func (f *File) parse(raw []byte) error {
	raw = bytes.TrimPrefix(raw, []byte("\ufeff")) // of editors on Windows
	var values map[string]any
	if err := toml.Unmarshal(raw, &values); err != nil {
		var at *toml.DecodeError
		if !errors.As(err, &at) {
			return usage.Error(fmt.Sprintf("%s: %v", f.Path, err), "The file must be TOML (toml.io).")
		}
		line, _ := at.Position()
		return f.fail(line, "%s", usage.PlainReason(strings.TrimPrefix(at.Error(), "toml: ")))
	}
	var lines unstable.Parser // values have none
	lines.Reset(raw)
	var table []string
	for lines.NextExpression() {
		e := lines.Expression()
		var key []string
		if e.Kind == unstable.KeyValue {
			key = slices.Clip(table)
		}
		line := 0
		for k := e.Key(); k.Next(); {
			key, line = append(key, string(k.Node().Data)), lines.Shape(k.Node().Raw).Start.Line
		}
		if e.Kind == unstable.Table && isTable(key[0]) {
			table = key
			continue
		}
		value := any(values)
		for _, k := range key {
			inner, _ := value.(map[string]any)
			value = inner[k]
		}
		if err := f.add(key, line, value); err != nil {
			return err
		}
	}
	return nil
}

func isTable(name string) bool { return name == namesTable || name == keysTable }

// add stores the value of a key, or those of an inline table.
func (f *File) add(key []string, line int, value any) error {
	if isTable(key[0]) {
		if inline, ok := value.(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(inline)) {
				if err := f.add(append(slices.Clip(key), name), line, inline[name]); err != nil {
					return err
				}
			}
			return nil
		}
		if len(key) == 1 {
			return f.fail(line, "a table is expected, such as [%s] or [%s]", namesTable, keysTable)
		}
	}
	switch key[0] {
	case keysTable:
		return f.addKeys(key[1:], line, value)
	case namesTable:
		name, ok := value.(string)
		if !ok || len(key) != 2 {
			return f.fail(line, "a name must be text, such as SPEAKER_00 = \"Anna\" in the table [names]")
		}
		f.names = append(f.names, fileEntry{key[1], name, line})
		return nil
	}
	name := strings.Join(key, ".")
	if !slices.Contains(settingNames(), name) {
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

// addKeys stores the keys of a command: [screen] and name, and a key or several.
func (f *File) addKeys(name []string, line int, value any) error {
	e := keyEntry{line: line}
	e.Command = name[len(name)-1]
	e.Screen = strings.Join(name[:len(name)-1], ".")
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, v := range list {
		key, ok := v.(string)
		switch {
		case !ok:
			return f.failKey(line, fmt.Sprintf("the keys of %q must be text, such as \"b\" or [\"b\", \"ctrl+b\"]", e.Command))
		case key != "":
			e.Keys = append(e.Keys, key)
		}
	}
	f.keys = append(f.keys, e)
	return nil
}

func (f *File) failKey(line int, text string) error {
	return usage.Error(f.origin(line)+": "+text, "Change the line; `hubbub config keys` lists the commands and their keys.")
}

// Keymap is the keys of the file. With an error it is the default one.
func (f *File) Keymap() (tui.Keymap, error) {
	settings := make([]tui.KeySetting, len(f.keys))
	for i, e := range f.keys {
		settings[i] = e.KeySetting
	}
	keys, i, err := tui.NewKeymap(settings)
	if err != nil {
		return tui.Keymap{}, f.failKey(f.keys[i].line, protocol.Clean(err.Error(), 200))
	}
	return keys, nil
}

func settingNames() (names []string) {
	for _, s := range settings {
		names = append(names, s.name)
	}
	return names
}

// unknown rejects a key and suggests the setting with the nearest name.
func (f *File) unknown(line int, name string) error {
	if strings.Contains(strings.ToLower(name), "key") {
		return usage.Error(fmt.Sprintf("%s: %q may not be in a file", f.origin(line), name), "Store the API key in the key ring with `hubbub config set-key URL`, or give it in HUBBUB_API_KEY.")
	}
	if meant := usage.Nearest(name, settingNames()); meant != "" {
		return f.fail(line, "there is no setting %q; did you mean %s?", name, meant)
	}
	return f.fail(line, "there is no setting %q", name)
}

func (f *File) tables() (tables Tables, err error) {
	for _, e := range f.names {
		if tables.Names, err = tables.Names.Rename(e.key, e.value); err != nil {
			return tables, badSetting(f.origin(e.line), e.key, e.value, err)
		}
	}
	tables.Keys, err = f.Keymap()
	return tables, err
}

func (f *File) origin(line int) string { return fmt.Sprintf("%s:%d", f.Path, line) }
