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
	values map[string]string // by the setting's name, as the command line would spell them
	names  []entry           // in order of the labels
	keys   []tui.KeySetting  // in order of the screens and commands
}

// entry is a line of the table of names.
type entry struct{ label, name string }

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
// An unknown key or a value of a wrong type is an error.
func Read() (*File, error) {
	f := &File{Path: filePath(), values: map[string]string{}}
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

func (f *File) fail(format string, args ...any) error {
	return usage.Error(f.Path+": "+fmt.Sprintf(format, args...), "Change the file; `hubbub config --help` lists the settings.")
}

func (f *File) parse(raw []byte) error {
	raw = bytes.TrimPrefix(raw, []byte("\ufeff")) // of editors on Windows
	var values map[string]any
	if err := toml.Unmarshal(raw, &values); err != nil {
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := at.Position()
			return f.fail("line %d: %s", line, usage.PlainReason(strings.TrimPrefix(at.Error(), "toml: ")))
		}
		return usage.Error(fmt.Sprintf("%s: %v", f.Path, err), "The file must be TOML (toml.io).")
	}
	return f.add(nil, values)
}

// add stores the value of a key, or those of a table.
func (f *File) add(key []string, value any) error {
	table, isTable := value.(map[string]any)
	switch inTable := len(key) > 0 && (key[0] == namesTable || key[0] == keysTable); {
	case isTable && (inTable || len(key) == 0):
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if err := f.add(append(slices.Clip(key), name), table[name]); err != nil {
				return err
			}
		}
		return nil
	case inTable && len(key) == 1:
		return f.fail("%s must be a table, such as [%s]", key[0], key[0])
	case inTable && key[0] == keysTable:
		return f.addKeys(key[1:], value)
	case inTable:
		name, ok := value.(string)
		if !ok || len(key) != 2 {
			return f.fail("%s: a name must be text, such as SPEAKER_00 = \"Anna\" in the table [names]", strings.Join(key, "."))
		}
		f.names = append(f.names, entry{key[1], name})
		return nil
	case !slices.Contains(settingNames(), key[0]):
		return f.unknown(key[0])
	}
	switch v := value.(type) {
	case string:
		f.values[key[0]] = v
	case bool:
		f.values[key[0]] = strconv.FormatBool(v)
	case int64:
		f.values[key[0]] = strconv.FormatInt(v, 10)
	case float64:
		f.values[key[0]] = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return f.fail("%s must be text, a number, true or false", key[0])
	}
	return nil
}

// addKeys stores the keys of a command: [screen] and name, and a key or several.
func (f *File) addKeys(name []string, value any) error {
	last := len(name) - 1
	s := tui.KeySetting{Screen: strings.Join(name[:last], "."), Command: name[last]}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, v := range list {
		key, ok := v.(string)
		switch {
		case !ok:
			return f.failKey(s, "the keys must be text, such as \"b\" or [\"b\", \"ctrl+b\"]")
		case key != "":
			s.Keys = append(s.Keys, key)
		}
	}
	f.keys = append(f.keys, s)
	return nil
}

func (f *File) failKey(s tui.KeySetting, text string) error {
	return usage.Error(f.Path+": "+keyName(s)+": "+text, "Change the file; `hubbub config keys` lists the commands and their keys.")
}

// keyName is the name of a command in the settings.
func keyName(s tui.KeySetting) string {
	return strings.TrimSuffix(keysTable+"."+s.Screen, ".") + "." + s.Command
}

// Keymap is the keys of the file. With an error it is the default one.
func (f *File) Keymap() (tui.Keymap, error) {
	keys, i, err := tui.NewKeymap(f.keys)
	if err != nil {
		return tui.Keymap{}, f.failKey(f.keys[i], protocol.Clean(err.Error(), 200))
	}
	return keys, nil
}

func settingNames() (names []string) {
	for _, s := range settings {
		names = append(names, s.name)
	}
	return names
}

// unknown rejects a key and suggests the settings with similar names.
func (f *File) unknown(name string) error {
	if strings.Contains(strings.ToLower(name), "key") {
		return usage.Error(fmt.Sprintf("%s: %q may not be in a file", f.Path, name), "Store the API key in the key ring with `hubbub config set-key URL`, or give it in HUBBUB_API_KEY.")
	}
	if similar := usage.Similar(name, settingNames()); len(similar) > 0 {
		return f.fail("there is no setting %q; did you mean %s?", name, strings.Join(similar, " or "))
	}
	return f.fail("there is no setting %q", name)
}

func (f *File) tables() (tables Tables, err error) {
	for _, e := range f.names {
		if tables.Names, err = tables.Names.Rename(e.label, e.name); err != nil {
			return tables, badSetting(f.Path, e.label, e.name, err)
		}
	}
	tables.Keys, err = f.Keymap()
	return tables, err
}
