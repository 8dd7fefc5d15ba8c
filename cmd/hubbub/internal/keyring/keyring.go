// Package keyring stores the API keys of servers in the system's key ring.
package keyring

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/zalando/go-keyring"

	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/hint"
)

// service is the service name of all entries; the user name is the server.
const service = "hubbub"

// ErrNoKey is the error of Key for a server without a key.
var ErrNoKey = errors.New("there is no API key for this server")

// Entry is the entry of one server.
type Entry struct {
	Server string // the same for every spelling of its address
}

// Find returns the entry of a server. It fails without a key ring: a key in a file
// is easily copied.
func Find(server string) (Entry, error) {
	name, err := user(server)
	if err == nil && !reachable() {
		err = ringError(errors.New("this machine has no reachable key ring"))
	}
	return Entry{name}, err
}

// Key returns the key of a server; ErrNoKey = there is none, or no key ring.
func Key(server string) (string, error) {
	name, err := user(server)
	if err != nil {
		return "", err
	}
	if !reachable() {
		return "", ErrNoKey
	}
	key, err := keyring.Get(service, name)
	if errors.Is(err, keyring.ErrNotFound) || errors.Is(err, keyring.ErrUnsupportedPlatform) {
		return "", ErrNoKey
	}
	return key, err
}

// Set stores a key.
func (e Entry) Set(key string) error {
	return ringError(keyring.Set(service, e.Server, key))
}

// Delete removes the key; that there is none is an error.
func (e Entry) Delete() error {
	err := keyring.Delete(service, e.Server)
	if errors.Is(err, keyring.ErrNotFound) {
		return hint.Add(fmt.Errorf("the key ring has no key for %s", e.Server), "`hubbub config` shows which server is set.")
	}
	return ringError(err)
}

func user(server string) (string, error) {
	u, err := client.ParseAddress(protocol.ShownAddress(server))
	if err != nil {
		return "", usage.Of(err)
	}
	return strings.ToLower(u.Scheme+"://"+u.Host) + strings.TrimRight(u.Path, "/"), nil
}

// reachable reports whether the key ring can be asked. On Linux, asking for one
// without a session bus may start a bus and block.
func reachable() bool {
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

func ringError(err error) error {
	if err == nil {
		return nil
	}
	return hint.Add(fmt.Errorf("the key ring cannot be used: %w", err), "Give the key in HUBBUB_API_KEY instead.")
}
