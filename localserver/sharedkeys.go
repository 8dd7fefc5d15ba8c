package localserver

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/store"
)

const (
	// shareEvery is how often the nodes of a cluster look at each other's
	// signing keys: a key that comes or goes is known to all soon after.
	shareEvery = time.Second
	// shareTimeout bounds one look.
	shareTimeout = 2 * time.Second
	// originFile names the data folder among those of a cluster.
	originFile = "origin"
)

// sharedKeys are the signing keys of all nodes of a cluster. A node with a
// data folder publishes what is in there, and withdraws what is there no
// longer; of an Ed25519 key only the public half leaves the folder.
//
// While the store is away, the keys that were last seen count.
type sharedKeys struct {
	store  store.SharedKeys
	data   string // "" when this node has no data folder
	origin string
	log    *slog.Logger

	mu      sync.Mutex
	seen    uint64
	asked   time.Time
	all     []store.SharedKey
	foreign map[string]signingKey // by id: those of other folders
}

// shareKeys makes the keys of all nodes known to this one, as far as the store
// answers.
func (s *Server) shareKeys(ctx context.Context) error {
	k := &sharedKeys{store: s.store, data: s.options.DataDir, log: s.log}
	if k.data != "" {
		var err error
		if k.origin, err = folderOrigin(k.data); err != nil {
			return &hinted{fmt.Errorf("the data folder cannot be used: %w", err), "Check its rights."}
		}
	}
	if err := k.share(ctx); err != nil {
		s.log.Warn("the signing keys of other nodes are not known yet", "error", err)
	}
	s.keys.signed.shared = k
	return nil
}

// folderOrigin is the name of a data folder, drawn when it is first needed.
func folderOrigin(data string) (string, error) {
	file := filepath.Join(data, originFile)
	raw, err := os.ReadFile(file)
	if err == nil {
		if id, err := uuid.Parse(strings.TrimSpace(string(raw))); err == nil {
			return id.String(), nil
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	id := uuid.NewString()
	return id, writeWhole(file, []byte(id+"\n"))
}

// run shares keys until the server ends.
func (k *sharedKeys) run(life context.Context, done func()) {
	defer done()
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(life, shareTimeout)
		var err error
		if broken := guarded(func() { err = k.share(ctx) }); broken != nil {
			err = broken
		}
		cancel()
		if err != nil && !failing && life.Err() == nil {
			k.log.Warn("signing keys cannot be shared now", "error", err)
		}
		failing = err != nil
	}
}

// share takes in the keys of the others and publishes those of this folder.
func (k *sharedKeys) share(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.refresh(ctx); err != nil || k.data == "" {
		return err
	}
	own, unread := readSigningKeys(k.data)
	var errs []error
	for _, key := range own {
		mine := store.SharedKey{Origin: k.origin, ID: key.id, Raw: key.public()}
		if !slices.ContainsFunc(k.all, func(t store.SharedKey) bool {
			return t.Origin == mine.Origin && t.ID == mine.ID && bytes.Equal(t.Raw, mine.Raw)
		}) {
			errs = append(errs, k.store.PublishKey(ctx, mine))
		}
	}
	for _, there := range k.all {
		gone := there.Origin == k.origin && !slices.ContainsFunc(own, func(o signingKey) bool { return o.id == there.ID })
		if gone && unread == nil { // a file that cannot be read now is no file that was removed
			errs = append(errs, k.store.WithdrawKey(ctx, there))
		}
	}
	return errors.Join(errs...)
}

// refresh takes in what has been published since the last time.
func (k *sharedKeys) refresh(ctx context.Context) error {
	k.asked = time.Now()
	all, version, err := k.store.PublishedKeys(ctx, k.seen)
	if err != nil || version == k.seen {
		return err
	}
	k.all, k.seen, k.foreign = all, version, map[string]signingKey{}
	for _, published := range all {
		if published.Origin == k.origin {
			continue // the folder itself knows better
		}
		key, err := parseSigningKey(published.ID, published.Raw)
		if err != nil {
			k.log.Warn("a signing key of another node cannot be used", "key", published.ID, "error", err)
			continue
		}
		k.foreign[key.id] = key
	}
	return nil
}

// key finds a signing key of another node. An unknown one may have been made
// just now; but whoever sends unknown ones costs the store one look a second.
func (k *sharedKeys) key(id string) (signingKey, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, ok := k.foreign[id]
	if !ok && time.Since(k.asked) > shareEvery {
		ctx, cancel := context.WithTimeout(context.Background(), shareTimeout)
		defer cancel()
		if err := k.refresh(ctx); err == nil {
			key, ok = k.foreign[id]
		}
	}
	return key, ok
}

// public is what others need to check API keys that were signed with this one.
func (k signingKey) public() []byte {
	if k.algorithm == HS256 {
		return pem.EncodeToMemory(&pem.Block{Type: hmacBlock, Bytes: k.check.([]byte)})
	}
	der, err := x509.MarshalPKIXPublicKey(k.check)
	if err != nil { // every key of ours can be written down
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}
