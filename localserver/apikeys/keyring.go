// Package apikeys authenticates API keys: static keys, and JSON Web Tokens
// signed with the signing keys of a data folder or, on a cluster, of any
// node's data folder.
//
// A signing key is one PEM file in the folder keys of the data folder, named
// after its id. New API keys are signed with the newest signing key. Removing
// the file revokes every API key that was signed with it. Revoke revokes a
// single one.
package apikeys

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/protocol/hint"
)

// DefaultAccount is the account of static API keys.
const DefaultAccount = "default"

// Principal is who a request comes from.
type Principal struct {
	Account    string
	Subscribed bool
	// Key is the ID of the API key, "" for a static key and for one without an
	// ID: neither can be revoked alone.
	Key string
}

// Keyring authenticates API keys. It holds static keys as hashes only. It is
// safe for concurrent use.
type Keyring struct {
	static   [][sha256.Size]byte
	folder   string // the data folder, "" for none
	now      func() time.Time
	log      *slog.Logger
	revoked  revocations
	exchange *exchange                 // nil before Join
	others   atomic.Pointer[otherKeys] // of the other nodes; requests do not wait for an exchange

	mu     sync.Mutex            // of what follows
	known  map[string]signingKey // of the folder, by id: those that API keys have named
	logged time.Time             // when an error was logged
}

// NewKeyring returns a keyring of static keys and, unless dataDir is "", of
// the signing keys in dataDir, which may come and go while it is in use. It is an
// error if the revoked keys of dataDir are not known.
func NewKeyring(static []string, dataDir string, now func() time.Time, log *slog.Logger) (*Keyring, error) {
	k := &Keyring{folder: dataDir, now: now, log: log, known: map[string]signingKey{}, revoked: revocations{folder: dataDir}}
	k.others.Store(&otherKeys{})
	switch err := k.revoked.refresh(); {
	case err != nil && k.revoked.all() == nil:
		return nil, hint.Add(fmt.Errorf("it is not known which API keys are revoked: %w", err), "Make the folder readable for this user.")
	case err != nil: // the keys whose records cannot be read are refused
		log.Error("revoked API keys could not be read", "error", err)
	}
	for _, key := range static {
		k.static = append(k.static, sha256.Sum256([]byte(key)))
	}
	return k, nil
}

// Identify returns whose API key it is; ok is false for a key that is not
// valid. A static key is compared by hash, with every static key and in
// constant time, so that the duration reveals nothing about a key, not even
// its length.
func (k *Keyring) Identify(key string) (who Principal, ok bool) {
	sum := sha256.Sum256([]byte(key))
	found := 0
	for i := range k.static {
		found |= subtle.ConstantTimeCompare(sum[:], k.static[i][:])
	}
	if found == 1 {
		return Principal{Account: DefaultAccount, Subscribed: true}, true
	}
	who, ok = k.identify(key)
	return who, ok && !k.Revoked(who.Key)
}

// Revoked reports whether the API key with an ID was revoked, as of the last
// Refresh.
func (k *Keyring) Revoked(id string) bool {
	if id == "" {
		return false
	}
	name := recordName(id)
	_, here := k.revoked.all()[name]
	return here || k.others.Load().revoked[name]
}

// Refresh reads which API keys were revoked and, after Join, exchanges
// revocations and signing keys with the other nodes, also if some of them cannot be
// read. Call it every RefreshInterval.
func (k *Keyring) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	err := k.revoked.refresh()
	if k.exchange != nil {
		err = errors.Join(err, k.exchange.run(ctx))
	}
	return err
}
