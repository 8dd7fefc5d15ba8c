package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hubbub/protocol"
	"hubbub/tui"
)

// setting is a flag that can also be set in the environment or in the settings
// file, under the flag's name. The flag validates the value.
type setting struct {
	name string
	only []string // commands; nil = all that have the flag
	help string
}

// settings are all settings in the order in which they are listed.
var settings = []setting{
	{"input", []string{"hubbub", "live"}, "mic, mic:NAME, a recorder, speakers or a file"},
	{"server", nil, "URL of a remote service"},
	{"ca", nil, "PEM file with the CA certificate to trust for it"},
	{"insecure", nil, "true: do not verify its certificate"},
	{"reconnect", nil, "longest time to try to reconnect, 0 = never"},
	{"latency", nil, "latency of the built-in server, 0.5s to 5s"},
	{"max-speakers", nil, "largest number of speakers, 1 to 8"},
	{"voices", nil, "true: recognise the people that hubbub voices lists"},
	{"voices-threshold", nil, "confidence that a name needs, 1 to 99 percent"},
	{"words", []string{"hubbub", "live"}, "recogniser of speech: URL or command"},
	{"words-model", []string{"hubbub", "live"}, "model that its endpoint is asked for"},
	{"output", []string{"hubbub", "live", "watch", "replay"}, "tui, lines, json, events, rttm or wire"},
	{"theme", nil, "auto, dark, light, contrast or colour-blind"},
	{"mouse", nil, "false: leave the mouse to the terminal"},
	{"ascii", nil, "true: use only ASCII characters"},
	{"accessible", nil, "true: append lines, for screen readers"},
}

// namesTable is the table of the settings file that maps labels to names,
// keysTable the one that gives keys to commands.
const (
	namesTable = "names"
	keysTable  = "keys"
)

// fileTables are the tables of the settings file.
type fileTables struct {
	names protocol.Annotations
	keys  tui.Keymap
}

// env is the setting's environment variable.
func (s setting) env() string {
	return "HUBBUB_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

func (s setting) on(cmd *cobra.Command) bool {
	return s.only == nil || slices.Contains(s.only, cmd.Name())
}

// lookUp returns the value of a setting from the environment or else the file,
// and its origin for people. An empty variable is not set.
func (s setting) lookUp(file *settingsFile) (value, origin string, found bool) {
	if value := os.Getenv(s.env()); value != "" {
		return value, s.env(), true
	}
	if e, ok := file.values[s.name]; ok {
		return e.value, fmt.Sprintf("%s:%d", file.path, e.line), true
	}
	return "", "", false
}

// applySettings sets every flag that is not on the command line from the
// environment or else from the settings file, and returns the tables of the file.
// A setting that the command line excludes is ignored.
func applySettings(cmd *cobra.Command) (tables fileTables, err error) {
	file, err := readSettings()
	if err != nil {
		return tables, err
	}
	flags := cmd.Flags()
	given := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	for _, s := range settings {
		f := flags.Lookup(s.name)
		if f == nil || given[s.name] || !s.on(cmd) {
			continue
		}
		value, origin, found := s.lookUp(file)
		if !found || s.excluded(value, given) || s.name == "output" && value == "wire" && cmd.Name() == "replay" { // which has no connection
			continue
		}
		if err := f.Value.Set(value); err != nil {
			return tables, badSetting(origin, s.name, value, err)
		}
	}
	if tables.names, err = file.annotations(); err != nil {
		return tables, err
	}
	tables.keys, err = file.keymap()
	return tables, err
}

// excluded reports whether the flags on the command line exclude a setting.
func (s setting) excluded(value string, given map[string]bool) bool {
	switch s.name {
	case "output":
		// tui is the default of a terminal; a pipe cannot have it.
		return value == "tui" || given["accessible"]
	case "accessible":
		return given["output"]
	case "ca":
		return given["insecure"]
	case "insecure":
		return given["ca"]
	}
	return false
}

func badSetting(origin, name, value string, err error) error {
	return &usageError{fmt.Sprintf("%s: %s is %q, but %s", origin, name, protocol.Clean(value, 100), plainReason(err.Error())), "Change it there; `hubbub config --help` lists the settings."}
}

// annotations are the names in the file.
func (f *settingsFile) annotations() (protocol.Annotations, error) {
	var notes protocol.Annotations
	for _, e := range f.names {
		next, err := notes.Rename(e.key, e.value)
		if err != nil {
			return notes, badSetting(fmt.Sprintf("%s:%d", f.path, e.line), e.key, e.value, err)
		}
		notes = next
	}
	return notes, nil
}
