package main

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

	"hubbub/protocol"
	"hubbub/tui"
)

// configEnv names another settings file than the one in the user's
// configuration folder.
const configEnv = "HUBBUB_CONFIG"

// settingsFile is the content of the settings file.
type settingsFile struct {
	path   string // "" = this machine has no configuration folder
	exists bool
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

// settingsPath is the path of the settings file, whether it exists or not.
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

// readSettings reads the settings file. It need not exist, unless HUBBUB_CONFIG
// names it. An unknown key or a value of a wrong type is an error with its line.
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
	return &usageError{fmt.Sprintf("%s:%d: %s", f.path, line, fmt.Sprintf(format, args...)), "Change the line; `hubbub config --help` lists the settings."}
}

func (f *settingsFile) parse(raw []byte) error {
	var values map[string]any
	if err := toml.Unmarshal(raw, &values); err != nil {
		return f.decodeError(err)
	}
	// Strict decoding into a struct that has no field but the table of names
	// reports every other key, with its line. Empty tables report nothing.
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

func (f *settingsFile) decodeError(err error) error {
	var at *toml.DecodeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &at):
		line, _ := at.Position()
		if strings.Contains(at.Error(), "struct") { // of Go
			return f.fail(line, "a table is expected, such as [%s] or [%s]", namesTable, keysTable)
		}
		return f.fail(line, "%s", plainReason(strings.TrimPrefix(at.Error(), "toml: ")))
	}
	return &usageError{fmt.Sprintf("%s: %v", f.path, err), "The file must be TOML (toml.io)."}
}

// add stores the value of a key.
func (f *settingsFile) add(key []string, line int, values map[string]any) error {
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
func (f *settingsFile) addKeys(name []string, line int, value any) error {
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

func (f *settingsFile) failKey(line int, text string) error {
	return &usageError{fmt.Sprintf("%s:%d: %s", f.path, line, text), "Change the line; `hubbub config keys` lists the commands and their keys."}
}

// keymap is the keys of the file.
func (f *settingsFile) keymap() (tui.Keymap, error) {
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
func (f *settingsFile) unknown(line int, name string) error {
	if strings.Contains(strings.ToLower(name), "key") {
		return &usageError{fmt.Sprintf("%s:%d: %q may not be in a file", f.path, line, name), "Store the API key in the key ring with `hubbub config set-key URL`, or give it in HUBBUB_API_KEY."}
	}
	if meant := nearest(name, settingNames()); meant != "" {
		return f.fail(line, "there is no setting %q; did you mean %s?", name, meant)
	}
	return f.fail(line, "there is no setting %q", name)
}
