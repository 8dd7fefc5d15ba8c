package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/protocol"
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
	Path   string // "" = this machine has no configuration folder
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
	if err != nil {
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
		return nil, usage.Error(fmt.Sprintf("cannot read the settings: %v", err), fix)
	}
	f.Exists = true
	return f, f.parse(raw)
}

func (f *File) fail(line int, format string, args ...any) error {
	return usage.Error(f.origin(line)+": "+fmt.Sprintf(format, args...), "Change the line; `hubbub config --help` lists the settings.")
}

func (f *File) parse(raw []byte) error {
	var values map[string]any
	if err := toml.Unmarshal(raw, &values); err != nil {
		return f.decodeError(err)
	}
	// Strict decoding into a struct of empty tables reports every key, with its line.
	// A table without keys reports nothing.
	var keys struct {
		Names struct{} `toml:"names"`
		Keys  struct {
			Wire        struct{} `toml:"wire-view"`
			Turns       struct{} `toml:"turn-list"`
			Microphones struct{} `toml:"microphone-list"`
		} `toml:"keys"`
	}
	err := toml.NewDecoder(bytes.NewReader(raw)).DisallowUnknownFields().Decode(&keys)
	var all *toml.StrictMissingError
	if !errors.As(err, &all) {
		return f.decodeError(err)
	}
	for _, e := range all.Errors {
		line, _ := e.Position()
		if err := f.add(e.Key(), line, values); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) decodeError(err error) error {
	var at *toml.DecodeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &at):
		line, _ := at.Position()
		if strings.Contains(at.Error(), "struct") { // of Go
			return f.fail(line, "a table is expected, such as [%s] or [%s]", namesTable, keysTable)
		}
		return f.fail(line, "%s", usage.PlainReason(strings.TrimPrefix(at.Error(), "toml: ")))
	}
	return usage.Error(fmt.Sprintf("%s: %v", f.Path, err), "The file must be TOML (toml.io).")
}

// add stores the value of a key.
func (f *File) add(key []string, line int, values map[string]any) error {
	value := any(values)
	for _, k := range key {
		table, _ := value.(map[string]any)
		value = table[k]
	}
	if key[0] == namesTable {
		name, ok := value.(string)
		if !ok || len(key) != 2 {
			return f.fail(line, "a name must be text, such as SPEAKER_00 = \"Anna\" in the table [names]")
		}
		f.names = append(f.names, fileEntry{key[1], name, line})
		return nil
	}
	if key[0] == keysTable && len(key) > 1 {
		return f.addKeys(key[1:], line, value)
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

// Keymap is the keys of the file.
func (f *File) Keymap() (tui.Keymap, error) {
	settings := make([]tui.KeySetting, len(f.keys))
	for i, e := range f.keys {
		settings[i] = e.KeySetting
	}
	keys, i, err := tui.NewKeymap(settings)
	if err != nil {
		return keys, f.failKey(f.keys[i].line, protocol.Clean(err.Error(), 200))
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

// origin is the place of a line, for messages.
func (f *File) origin(line int) string { return fmt.Sprintf("%s:%d", f.Path, line) }
