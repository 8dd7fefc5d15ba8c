package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"hubbub/cmd/hubbub/internal/session"
	"hubbub/protocol"
	"hubbub/protocol/hint"

	"github.com/zalando/go-keyring"
	"golang.org/x/term"
)

// apiKeyEnv gives a key without the command line, which everybody on the machine
// can read.
const apiKeyEnv = "HUBBUB_API_KEY"

// keyService is the service name in the key ring; the user name is the server.
const keyService = "hubbub"

// maxKey bounds an API key, in bytes; a JWT has a few hundred.
const maxKey = 8 << 10

var (
	errNoKey  = errors.New("there is no API key for this server")
	errNoRing = errors.New("this machine has no reachable key ring")
)

// keyUser is the user name of a server in the key ring: the same for every
// spelling of its address.
func keyUser(server string) (string, error) {
	u, err := serverAddress(protocol.ShownAddress(server))
	if err != nil {
		return "", err
	}
	return strings.ToLower(u.Scheme+"://"+u.Host) + strings.TrimRight(u.Path, "/"), nil
}

// ringReachable is a variable because tests have a key ring of their own. On
// Linux, asking for a key ring without a session bus may start one and block.
var ringReachable = func() bool {
	if runtime.GOOS != "linux" || os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil
}

// storedKey returns the key of a server; errNoKey = there is none, or no key
// ring.
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

// setKey reads a key and stores it. Without a key ring it fails: a key in a file
// is easily copied.
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
		return hint.Add(fmt.Errorf("the key ring has no key for %s", user), "`hubbub config` shows which server is set.")
	}
	if err != nil {
		return ringError(err)
	}
	a.notice("the key for %s is no longer in the key ring", user)
	return nil
}

// readKey reads one line: on a terminal after a prompt and without echo.
func (a *App) readKey(user string) (string, error) {
	var raw []byte
	var err error
	if session.IsTerminal(a.Stdin) {
		fmt.Fprintf(a.Stderr, "API key for %s (it is not shown): ", user)
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
	if len(key) > maxKey {
		return "", hint.Add(fmt.Errorf("this is no API key: it is longer than %d bytes", maxKey), "Send the key alone, in one line.")
	}
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return "", hint.Add(errors.New("this is no API key: it contains blanks or characters beyond ASCII"), "Send the key alone, in one line.")
		}
	}
	if key == "" {
		return "", hint.Add(errors.New("no key was given"), "Type it, or send it on standard input: `hubbub config set-key URL < key.txt`.")
	}
	return key, nil
}

func ringError(err error) error {
	return hint.Add(fmt.Errorf("the key ring cannot be used: %w", err), "Give the key in "+apiKeyEnv+" instead.")
}
