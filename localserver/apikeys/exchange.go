package apikeys

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/store"
	"hubbub/protocol/atomicfile"
	"hubbub/protocol/hint"
)

const (
	// RefreshInterval is how often a node looks for revoked API keys, and the
	// nodes of a cluster exchange them and their signing keys: a change is known
	// to all soon after.
	RefreshInterval = time.Second
	// refreshTimeout bounds one exchange.
	refreshTimeout = 2 * time.Second
	// revokedOrigin is where revocations are published. They belong to no data
	// folder: every node that knows of one rejects the key.
	revokedOrigin = "revoked"
	// originFile holds the name of a data folder among those of a cluster.
	originFile = "origin"
)

// exchange distributes signing keys and revocations over the nodes of a cluster.
// A node with a data folder publishes the keys in it and withdraws those that
// were removed from it. Of an Ed25519 key only the public half is published. A
// revocation is published by every node that has it, and withdrawn when the key
// has expired.
//
// While the store does not respond, the keys of the last exchange stay valid.
type exchange struct {
	ring   *Keyring
	store  SharedKeys
	origin string // the name of the data folder, "" without one

	mu        sync.Mutex
	version   uint64
	published []store.SharedKey
}

// SharedKeys is what an exchange needs of the store.
type SharedKeys interface {
	PublishKey(ctx context.Context, key store.SharedKey) error
	WithdrawKey(ctx context.Context, key store.SharedKey) error
	PublishedKeys(ctx context.Context, seen uint64) (keys []store.SharedKey, version uint64, err error)
}

// otherKeys are what is published, except the keys of the own data folder.
type otherKeys struct {
	signing map[string]signingKey // of the other data folders, by id
	revoked map[string]bool       // by the names of their records
}

// Join makes the keyring accept API keys signed in the data folder of any
// node that shares the store. Call it before the keyring is used, and
// afterwards call Refresh every RefreshInterval. A store that does not
// respond now is no error.
func (k *Keyring) Join(ctx context.Context, s SharedKeys) error {
	e := &exchange{ring: k, store: s}
	if k.folder != "" {
		var err error
		if e.origin, err = folderOrigin(k.folder); err != nil {
			return hint.Add(fmt.Errorf("the data folder cannot be used: %w", err), "Check its permissions.")
		}
	}
	if err := e.run(ctx); err != nil {
		k.log.Warn("the signing keys of the other nodes are not known yet", "error", err)
	}
	k.exchange = e
	return nil
}

// folderOrigin returns the name of a data folder, and creates it when it is
// first needed.
func folderOrigin(folder string) (string, error) {
	file := filepath.Join(folder, originFile)
	raw, err := os.ReadFile(file)
	if err == nil {
		if id, err := uuid.Parse(strings.TrimSpace(string(raw))); err == nil {
			return id.String(), nil
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	id := uuid.NewString()
	return id, atomicfile.WriteFile(file, []byte(id+"\n"), 0o600)
}

// run makes one exchange.
func (e *exchange) run(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.refresh(ctx); err != nil || e.ring.folder == "" {
		return err
	}
	local, unread := readSigningKeys(e.ring.folder)
	var errs []error
	for _, key := range local {
		mine := store.SharedKey{Origin: e.origin, ID: key.id, Raw: key.public()}
		if !slices.ContainsFunc(e.published, func(p store.SharedKey) bool {
			return p.Origin == mine.Origin && p.ID == mine.ID && bytes.Equal(p.Raw, mine.Raw)
		}) {
			errs = append(errs, e.store.PublishKey(ctx, mine))
		}
	}
	for _, p := range e.published {
		removed := p.Origin == e.origin && !slices.ContainsFunc(local, func(k signingKey) bool { return k.id == p.ID })
		if removed && unread == nil || // a file that cannot be read now was not removed
			p.Origin == revokedOrigin && e.obsolete(p.Raw) {
			errs = append(errs, e.store.WithdrawKey(ctx, p))
		}
	}
	for name, record := range e.ring.revoked.all() {
		// Without the ID, which may be longer than what the store takes: name is its hash.
		if raw, err := json.Marshal(Record{Expires: record.Expires}); err == nil && !e.ring.others.Load().revoked[name] && !e.obsolete(raw) {
			errs = append(errs, e.store.PublishKey(ctx, store.SharedKey{Origin: revokedOrigin, ID: name, Raw: raw}))
		}
	}
	return errors.Join(errs...)
}

// obsolete reports whether a revocation is of a key that expired long ago.
func (e *exchange) obsolete(raw []byte) bool {
	var r Record
	return json.Unmarshal(raw, &r) == nil && r.expired(e.ring.now(), keptRecord)
}

// refresh reads the published keys if they have changed since the last time.
func (e *exchange) refresh(ctx context.Context) error {
	published, version, err := e.store.PublishedKeys(ctx, e.version)
	if err != nil || version == e.version {
		return err
	}
	e.published, e.version = published, version
	others := &otherKeys{signing: map[string]signingKey{}, revoked: map[string]bool{}}
	for _, p := range published {
		switch p.Origin {
		case e.origin:
			continue // the folder itself is the authority
		case revokedOrigin:
			others.revoked[p.ID] = true
			continue
		}
		key, err := parseSigningKey(p.ID, p.Raw)
		if err != nil {
			e.ring.log.Warn("a signing key of another node cannot be used", "key", p.ID, "error", err)
			continue
		}
		others.signing[key.id] = key
	}
	e.ring.others.Store(others)
	return nil
}
