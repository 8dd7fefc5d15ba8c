package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"hubbub/cmd/hubbub/internal/keyring"
	"hubbub/cmd/hubbub/internal/session"
	"hubbub/cmd/hubbub/internal/settings"
	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/hint"
	"hubbub/tui"
)

func newConfig(a *App) *cobra.Command {
	var output choice
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings and their origin",
		Long: `Show every setting, its value and its origin. Flags take precedence over
environment variables, these over the settings file, and the file over the
defaults. The file is TOML, in the user's configuration folder; HUBBUB_CONFIG
names another file. The settings and their environment variables:

` + settings.Help() + `
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
		newKeyChange(a, "set-key", "Store the API key of a server, read from standard input, in the key ring", "in the key ring", func(e keyring.Entry) error {
			key, err := a.readKey(e.Server)
			if err != nil {
				return err
			}
			return e.Set(key)
		}),
		newConfigKeys(a),
		newKeyChange(a, "delete-key", "Remove the API key of a server from the key ring", "no longer in the key ring", keyring.Entry.Delete),
	)
	return cmd
}

func newConfigKeys(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "keys",
		Short: "List the commands of the screen and their keys",
		Long: `List the commands of the screen and their keys, in the form of the settings file,
which can give other keys to each. Commands of the table [keys] are those of the
timeline and of all screens.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			file, err := settings.Read()
			if err != nil {
				return err
			}
			keys, wrong := file.Keymap() // whose hint is to look at this list
			var out strings.Builder
			for _, screen := range append([]string{""}, tui.KeyScreens...) {
				fmt.Fprintf(&out, "[%s]\n", strings.TrimSuffix("keys."+screen, "."))
				for _, c := range keys.Commands() {
					if c.Screen == screen && c.Command != "interrupt" {
						fmt.Fprintf(&out, "%s\n", strings.ReplaceAll(fmt.Sprintf("%q = %q", c.Command, c.Keys), "\" \"", "\", \""))
					}
				}
			}
			_, err = io.WriteString(a.Stdout, out.String())
			return cmp.Or(err, wrong)
		},
	}
}

// config prints the settings that `hubbub live` would use.
func (a *App) config(format string) error {
	file, err := settings.Read()
	if err != nil {
		return err
	}
	flags := newLive(a).Flags()
	all, err := file.Values(flags)
	if err != nil {
		return err
	}
	all = append(all, apiKey(flags.Lookup("server").Value.String()))
	if format == "json" {
		return protocol.WriteJSON(a.Stdout, struct {
			File     string           `json:"file"`
			Exists   bool             `json:"exists"`
			Settings []settings.Value `json:"settings"`
		}{file.Path, file.Exists, all})
	}
	state := "does not exist"
	if file.Exists {
		state = "is read"
	}
	if file.Path == "" {
		file.Path, state = "no settings file:", "the environment names no folder of yours for it; HUBBUB_CONFIG can name the file"
	}
	fmt.Fprintf(a.Stdout, "%s %s\n\n", file.Path, state)
	var rows []string
	for _, s := range all {
		rows = append(rows, s.Key+"\t"+cmp.Or(s.Value, "-")+"\t"+s.From)
	}
	return writeTable(a.Stdout, rows)
}

// apiKey is where the API key of a server comes from, never the key.
func apiKey(server string) settings.Value {
	s := settings.Value{Key: "api-key", From: "default"}
	if os.Getenv(apiKeyEnv) != "" {
		s.Value, s.From = "set", apiKeyEnv
	} else if server != "" {
		if _, err := keyring.Key(server); err == nil {
			s.Value, s.From = "set", "key ring"
		}
	}
	return s
}

// newKeyChange is a command that changes the key of a server in the key ring, and says where it is then.
func newKeyChange(a *App, name, short, then string, change func(keyring.Entry) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " URL",
		Short: short,
		Args:  exactArgs("URL"),
		RunE: func(_ *cobra.Command, args []string) error {
			entry, err := keyring.Find(args[0])
			if err != nil {
				return err
			}
			if err := change(entry); err != nil {
				return err
			}
			a.notice("the key for %s is %s", entry.Server, then)
			return nil
		},
	}
}

// maxKey bounds an API key, in bytes; a JWT has a few hundred.
const maxKey = 8 << 10

// readKey reads one line: on a terminal after a prompt and without echo.
func (a *App) readKey(server string) (string, error) {
	a.waiting.Store(true)
	defer a.waiting.Store(false)
	var raw []byte
	var err error
	if session.IsTerminal(a.Stdin) {
		if state, err := term.GetState(int(a.Stdin.Fd())); err == nil {
			a.onSecondInterrupt(func() bool { _ = term.Restore(int(a.Stdin.Fd()), state); return false })
		}
		fmt.Fprintf(a.Stderr, "API key for %s (it is not shown): ", server)
		raw, err = term.ReadPassword(int(a.Stdin.Fd()))
		fmt.Fprintln(a.Stderr)
	} else {
		raw, err = bufio.NewReader(io.LimitReader(a.Stdin, maxKey+2)).ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		return "", hint.Add(fmt.Errorf("cannot read the key: %w", err), "Type it, or send it on standard input.")
	}
	key := strings.TrimSpace(string(raw))
	switch {
	case key == "":
		return "", hint.Add(errors.New("no key was given"), "Type it, or send it on standard input: `hubbub config set-key URL < key.txt`.")
	case len(key) > maxKey:
		return "", hint.Add(fmt.Errorf("this is not an API key: it is longer than %d bytes", maxKey), "Send the key alone, in one line.")
	}
	return key, hint.Add(client.CheckKey(key), "Send the key alone, in one line.")
}
