// Package settings reads the settings: flags that can also be set in the
// environment or in a TOML file. Apply sets those of a command. All errors are
// wrong usage.
package settings

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hubbub/cmd/hubbub/internal/usage"
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
	{"words", []string{"hubbub", "live"}, "speech recogniser: URL, command or service"},
	{"words-model", []string{"hubbub", "live"}, "model that its endpoint is asked for"},
	{"output", []string{"hubbub", "live", "watch", "replay"}, "tui, lines, json, events, rttm or wire"},
	{"theme", nil, "auto, dark, light, contrast or colour-blind"},
	{"mouse", nil, "false: leave the mouse to the terminal"},
	{"ascii", nil, "true: draw with ASCII characters only"},
	{"accessible", nil, "true: append lines, for screen readers"},
}

// Tables are the tables of the settings file.
type Tables struct {
	Names protocol.Annotations // for the labels of new sessions
	Keys  tui.Keymap
}

// Value is a value that is set, and its origin as displayed.
type Value struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
}

func (s setting) env() string {
	return "HUBBUB_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// lookUp returns the value of a setting from the environment or else the file,
// and its origin. An empty variable is not set.
func (s setting) lookUp(file *File) (value, origin string, found bool) {
	if value := os.Getenv(s.env()); value != "" {
		return value, s.env(), true
	}
	value, found = file.values[s.name]
	return value, file.Path, found
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
	return usage.Error(fmt.Sprintf("%s: %s is %q, but %s", origin, name, protocol.Clean(value, 100), usage.PlainReason(err.Error())), "Change it there; `hubbub config --help` lists the settings.")
}

// Help lists the settings, their environment variables and meanings, one in a line.
func Help() string {
	var help strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&help, "  %-16s %-24s %s\n", s.name, s.env(), s.help)
	}
	return help.String()
}

// Apply sets every flag that is not on the command line from the environment or
// else from the settings file, and returns the tables of the file. A setting that
// the command line excludes is ignored.
func Apply(cmd *cobra.Command) (Tables, error) {
	file, err := Read()
	if err != nil {
		return Tables{}, err
	}
	flags := cmd.Flags()
	given := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	for _, s := range settings {
		f := flags.Lookup(s.name)
		if f == nil || given[s.name] || s.only != nil && !slices.Contains(s.only, cmd.Name()) {
			continue
		}
		value, origin, found := s.lookUp(file)
		if !found || s.excluded(value, given) || s.name == "output" && value == "wire" && cmd.Name() == "replay" { // which has no connection
			continue
		}
		if err := f.Value.Set(value); err != nil {
			return Tables{}, badSetting(origin, s.name, value, err)
		}
	}
	return file.tables()
}

// Values sets the flags of all settings from the environment or else from the
// file, and returns them and what the tables contain. The address of the server
// is without its password.
func (f *File) Values(flags *pflag.FlagSet) (all []Value, err error) {
	for _, s := range settings {
		flag, from := flags.Lookup(s.name), "default"
		if value, origin, found := s.lookUp(f); found {
			if err := flag.Value.Set(value); err != nil {
				return nil, badSetting(origin, s.name, value, err)
			}
			from = origin
		}
		value := flag.Value.String()
		if s.name == "server" {
			value = protocol.ShownAddress(value)
		}
		all = append(all, Value{s.name, value, from})
	}
	if _, err := f.tables(); err != nil {
		return nil, err
	}
	for _, n := range f.names {
		all = append(all, Value{namesTable + "." + n.label, n.name, f.Path})
	}
	for _, k := range f.keys {
		all = append(all, Value{keyName(k), strings.Join(k.Keys, ", "), f.Path})
	}
	return all, nil
}
