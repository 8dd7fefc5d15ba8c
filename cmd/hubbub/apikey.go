package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/zalando/go-keyring"
	"golang.org/x/term"
)

// apiKeyEnv is where a key can be given that must not be on the command line:
// everybody on the machine can read that.
const apiKeyEnv = "HUBBUB_API_KEY"

// keyService is hubbub's name in the key ring; a key's user is its server.
const keyService = "hubbub"

// maxKey bounds an API key; a JWT has a few hundred characters.
const maxKey = 8 << 10

var (
	errNoKey  = errors.New("there is no API key for this server")
	errNoRing = errors.New("this machine has no key ring that can be reached")
)

// keyUser is a server's address as the key ring knows it: the same for every
// spelling of it.
func keyUser(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", &usageError{fmt.Sprintf("%q is no address of a server", withoutCredentials(server)), "Give it as in --server, such as https://diarization.example."}
	}
	return strings.ToLower(u.Scheme+"://"+u.Host) + strings.TrimRight(u.Path, "/"), nil
}

// ringReachable is a variable for tests, which have a ring of their own. On
// Linux asking for a ring without a session bus may start one and wait for it.
var ringReachable = func() bool {
	if runtime.GOOS != "linux" || os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	return dir != "" && exists(filepath.Join(dir, "bus"))
}

// storedKey looks a key up; errNoKey = there is none, or no key ring.
func storedKey(server string) (string, error) {
	user, err := keyUser(server)
	if err != nil {
		return "", err
	}
	if !ringReachable() {
		return "", errNoKey
	}
	key, err := keyring.Get(keyService, user)
	switch {
	case errors.Is(err, keyring.ErrNotFound), errors.Is(err, keyring.ErrUnsupportedPlatform):
		return "", errNoKey
	case err != nil:
		return "", err
	}
	return key, nil
}

// setKey reads a key and stores it. Where there is no ring it says so: a file
// would be readable by whoever copies it.
func (a *App) setKey(server string) error {
	user, err := keyUser(server)
	if err != nil {
		return err
	}
	if !ringReachable() {
		return ringError(errNoRing)
	}
	key, err := a.readKey(user)
	if err != nil {
		return err
	}
	if err := keyring.Set(keyService, user, key); err != nil {
		return ringError(err)
	}
	a.notice("the key for %s is in the key ring", user)
	return nil
}

func (a *App) deleteKey(server string) error {
	user, err := keyUser(server)
	if err != nil {
		return err
	}
	if !ringReachable() {
		return ringError(errNoRing)
	}
	err = keyring.Delete(keyService, user)
	if errors.Is(err, keyring.ErrNotFound) {
		return &failure{fmt.Errorf("the key ring has no key for %s", user), "`hubbub config` shows which server is set."}
	}
	if err != nil {
		return ringError(err)
	}
	a.notice("the key for %s is no longer in the key ring", user)
	return nil
}

// readKey reads one line: on a terminal behind a prompt and without echo.
func (a *App) readKey(user string) (string, error) {
	var raw []byte
	var err error
	if isTerminal(a.Stdin) {
		fmt.Fprintf(a.Stderr, "API key for %s (it is not shown): ", user)
		raw, err = term.ReadPassword(int(a.Stdin.Fd()))
		fmt.Fprintln(a.Stderr)
	} else {
		raw, err = bufio.NewReader(io.LimitReader(a.Stdin, maxKey)).ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		return "", &failure{fmt.Errorf("cannot read the key: %w", err), "Type it, or send it on standard input."}
	}
	key := strings.TrimSpace(string(raw))
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return "", &failure{errors.New("this is no API key: it holds blanks or characters beyond ASCII"), "Send the key alone, in one line."}
		}
	}
	if key == "" {
		return "", &failure{errors.New("no key was given"), "Type it, or send it on standard input: `hubbub config set-key URL < key.txt`."}
	}
	return key, nil
}

func ringError(err error) error {
	return &failure{fmt.Errorf("the key ring cannot be used: %w", err), "Give the key in " + apiKeyEnv + " instead."}
}
