package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hubbub/protocol"
)

// setting is a flag that may also be set in the environment or in the settings
// file; its name is the flag's. What a value may be, the flag says.
type setting struct {
	name string
	only []string // commands; nil = all that have the flag
	help string
}

// settings are all of them, in the order in which they are listed.
var settings = []setting{
	{"input", []string{"hubbub", "live"}, "mic, mic:NAME or a file"},
	{"server", nil, "address of a remote service"},
	{"ca", nil, "PEM file of the authority to trust for it"},
	{"insecure", nil, "true: do not check its certificate"},
	{"reconnect", nil, "how long a lost stream is tried to be resumed, 0 = not at all"},
	{"latency", nil, "how far behind the built-in server decides, 0.5s to 5s"},
	{"max-speakers", nil, "labels at most, 1 to 8"},
	{"output", []string{"hubbub", "live", "watch", "replay"}, "tui, lines, json, events, rttm or wire"},
	{"theme", nil, "auto, dark or light"},
	{"mouse", nil, "false: the mouse is the terminal's"},
	{"ascii", nil, "true: no glyphs beyond ASCII"},
	{"accessible", nil, "true: lines for a screen reader"},
}

// namesTable is the table of the settings file that names labels.
const namesTable = "names"

// env is the setting's variable in the environment.
func (s setting) env() string {
	return "HUBBUB_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

func (s setting) on(cmd *cobra.Command) bool {
	return s.only == nil || slices.Contains(s.only, cmd.Name())
}

// lookUp finds a setting outside the command line: its value, where it is from
// for people, and whether there is one. An empty variable is none.
func (s setting) lookUp(file *settingsFile) (value, from string, found bool) {
	if value := os.Getenv(s.env()); value != "" {
		return value, s.env(), true
	}
	if e, ok := file.values[s.name]; ok {
		return e.value, fmt.Sprintf("%s:%d", file.path, e.line), true
	}
	return "", "", false
}

// settle gives every flag that the command line left out its value from the
// environment or else from the settings file. What the command line excludes
// by what it says is left at its default.
func settle(cmd *cobra.Command) (*settingsFile, error) {
	file, err := readSettings()
	if err != nil {
		return nil, err
	}
	flags := cmd.Flags()
	given := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	for _, s := range settings {
		f := flags.Lookup(s.name)
		if f == nil || given[s.name] || !s.on(cmd) {
			continue
		}
		value, from, found := s.lookUp(file)
		if !found || s.yields(value, given) || s.name == "output" && value == "wire" && cmd.Name() == "replay" { // a recording has no wire
			continue
		}
		if err := f.Value.Set(value); err != nil {
			return nil, badSetting(from, s.name, value, err)
		}
	}
	return file, nil
}

// yields tells that the command line leaves no room for a setting.
func (s setting) yields(value string, given map[string]bool) bool {
	switch s.name {
	case "output":
		// "tui" is what a terminal gets anyway; a pipe has no use for it.
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

func badSetting(from, name, value string, err error) error {
	why := err.Error()
	if strings.Contains(why, "ParseBool") {
		why = "must be true or false"
	}
	return &usageError{fmt.Sprintf("%s: %s is %q, but %s", from, name, protocol.Clean(value, 100), why), "Change it there, or see `hubbub config --help` for what it may be."}
}

// annotations are the names that the settings file gives to labels.
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

// service completes what the settings say of a remote service: they may hold
// an authority for one that this run does not use.
func (f *liveFlags) service(cmd *cobra.Command) error {
	if f.server == "" {
		if !cmd.Flags().Changed("ca") {
			f.ca = ""
		}
		if !cmd.Flags().Changed("insecure") {
			f.insecure = false
		}
		return nil
	}
	if f.apiKey != "" {
		return nil
	}
	if f.apiKey = os.Getenv(apiKeyEnv); f.apiKey != "" {
		return nil
	}
	key, err := storedKey(f.server)
	switch {
	case err == nil:
		f.apiKey = key
		return nil
	case errors.Is(err, errNoKey):
		return &usageError{"no API key for " + withoutCredentials(f.server), "Store one with `hubbub config set-key " + withoutCredentials(f.server) + "`, or give it in HUBBUB_API_KEY or with --api-key."}
	}
	return &failure{fmt.Errorf("cannot ask the key ring for the API key: %w", err), "Unlock the key ring, or give the key in HUBBUB_API_KEY."}
}
