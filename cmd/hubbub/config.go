package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"hubbub/protocol"
	"hubbub/tui"
)

// settingLine is a line of `hubbub config`.
type settingLine struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
}

func newConfig(a *App) *cobra.Command {
	var output choice
	var help strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&help, "  %-16s %-24s %s\n", s.name, s.env(), s.help)
	}
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings and their origin",
		Long: `Show every setting, its value and its origin. Flags take precedence over
environment variables, these over the settings file, and the file over the
defaults. The file is TOML, in the user's configuration folder; HUBBUB_CONFIG
names another file. The settings and their environment variables:

` + help.String() + `
The table [names] maps labels to names for new sessions. The table [keys] gives
keys to commands of the screen; 'hubbub config keys' lists them. API keys are stored
in the system's key ring (set-key) or given in HUBBUB_API_KEY, never in the file.`,
		Example: `  theme = "dark"
  input = "mic:USB"
  latency = "1.5s"
  [names]
  SPEAKER_00 = "Anna"
  [keys]
  bookmark = "ctrl+b"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.config(output.value) },
	}
	addOutput(cmd, &output)
	cmd.AddCommand(
		&cobra.Command{
			Use:   "set-key URL",
			Short: "Store the API key of a server, read from standard input, in the key ring",
			Args:  exactArgs("URL"),
			RunE:  func(_ *cobra.Command, args []string) error { return a.setKey(args[0]) },
		},
		newConfigKeys(a),
		&cobra.Command{
			Use:   "delete-key URL",
			Short: "Remove the API key of a server from the key ring",
			Args:  exactArgs("URL"),
			RunE:  func(_ *cobra.Command, args []string) error { return a.deleteKey(args[0]) },
		},
	)
	return cmd
}

// newConfigKeys lists the commands of the screen and their keys.
func newConfigKeys(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "keys",
		Short: "List the commands of the screen and their keys",
		Long: `List the commands of the screen and their keys, in the form of the settings file,
which can give other keys to each. Commands of the table [keys] are those of the
timeline and of all screens.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			file, err := readSettings()
			if err != nil {
				return err
			}
			keys, err := file.keymap()
			if err != nil {
				return err
			}
			var out strings.Builder
			for _, screen := range append([]string{""}, tui.KeyScreens...) {
				fmt.Fprintf(&out, "[%s]\n", strings.TrimSuffix(keysTable+"."+screen, "."))
				for _, c := range keys.Commands() {
					if c.Screen == screen && c.Command != "interrupt" {
						fmt.Fprintf(&out, "%s\n", strings.ReplaceAll(fmt.Sprintf("%q = %q", c.Command, c.Keys), "\" \"", "\", \""))
					}
				}
			}
			_, err = io.WriteString(a.Stdout, out.String())
			return err
		},
	}
}

// config prints the settings that `hubbub live` would use.
func (a *App) config(format string) error {
	file, err := readSettings()
	if err != nil {
		return err
	}
	live := newLive(a)
	var all []settingLine
	for _, s := range settings {
		flag := live.Flags().Lookup(s.name)
		shown := settingLine{s.name, flag.Value.String(), "default"}
		if value, origin, found := s.lookUp(file); found {
			if err := flag.Value.Set(value); err != nil {
				return badSetting(origin, s.name, value, err)
			}
			shown.Value, shown.From = flag.Value.String(), origin
		}
		if s.name == "server" {
			shown.Value = protocol.ShownAddress(shown.Value)
		}
		all = append(all, shown)
	}
	if _, err := file.annotations(); err != nil {
		return err
	}
	if _, err := file.keymap(); err != nil {
		return err
	}
	for _, n := range file.names {
		all = append(all, settingLine{namesTable + "." + n.key, n.value, fmt.Sprintf("%s:%d", file.path, n.line)})
	}
	for _, k := range file.keys {
		name := strings.TrimPrefix(k.Screen+"."+k.Command, ".")
		all = append(all, settingLine{keysTable + "." + name, strings.Join(k.Keys, ", "), fmt.Sprintf("%s:%d", file.path, k.line)})
	}
	all = append(all, apiKeyLine(live.Flags().Lookup("server").Value.String()))
	if format == "json" {
		enc := json.NewEncoder(a.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			File     string        `json:"file"`
			Exists   bool          `json:"exists"`
			Settings []settingLine `json:"settings"`
		}{file.path, file.exists, all})
	}
	state := "is not there"
	if file.exists {
		state = "is read"
	}
	fmt.Fprintf(a.Stdout, "%s %s\n\n", file.path, state)
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, cmp.Or(s.Value, "-"), s.From)
	}
	return w.Flush()
}

// apiKeyLine is the origin of the API key, never the key.
func apiKeyLine(server string) settingLine {
	s := settingLine{Key: "api-key", From: "default"}
	if os.Getenv(apiKeyEnv) != "" {
		s.Value, s.From = "set", apiKeyEnv
	} else if server != "" {
		if _, err := storedKey(server); err == nil {
			s.Value, s.From = "set", "key ring"
		}
	}
	return s
}
