package apikeys

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hubbub/protocol/atomicfile"
	"hubbub/protocol/hint"
)

const (
	// recordFolder holds the records of API keys in the data folder, one file
	// each, named after the hash of its ID: an ID can be any text.
	recordFolder = "apikeys"
	recordSuffix = ".json"
	// keptRecord is how long the record of an expired API key is kept.
	keptRecord = 30 * 24 * time.Hour
	// maxID bounds the ID of an API key, in bytes. A key with a longer one, in base64,
	// does not fit into the headers of a request.
	maxID = 12 << 10
)

// Record is what a data folder knows about an API key. It does not contain the
// key.
type Record struct {
	ID string `json:"id"` // the claim jti
	// Account, Plan and SigningKey are "" for a key that was revoked by its ID
	// and not created in this data folder.
	Account    string     `json:"account"`
	Plan       string     `json:"plan"`
	SigningKey string     `json:"signingKey"`
	Created    *time.Time `json:"created"` // nil if unknown
	Expires    *time.Time `json:"expires"` // nil if unknown
	Revoked    *time.Time `json:"revoked"` // nil for a key that is not revoked
}

// expired reports whether the key has expired, at least a time ago.
func (r Record) expired(now time.Time, ago time.Duration) bool {
	return r.Expires != nil && now.Sub(*r.Expires) > ago
}

// State is what List shows of the key: revoked, expired or valid. A key whose
// signing key was removed is valid here.
func (r Record) State(now time.Time) string {
	switch {
	case r.Revoked != nil:
		return "revoked"
	case r.expired(now, 0):
		return "expired"
	}
	return "valid"
}

// recordName is the name of a record without its suffix.
func recordName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// List returns the records of the API keys of a data folder, oldest first: of
// those that were created in it or revoked in it, and did not expire long ago.
func List(dataDir string, now time.Time) ([]Record, error) {
	named, err := readRecords(dataDir)
	maps.DeleteFunc(named, func(_ string, r Record) bool { return r.expired(now, keptRecord) })
	created := func(r Record) time.Time {
		if r.Created == nil { // unknown: first
			return time.Time{}
		}
		return *r.Created
	}
	all := slices.SortedFunc(maps.Values(named), func(a, b Record) int {
		return cmp.Or(created(a).Compare(created(b)), strings.Compare(a.ID, b.ID))
	})
	return all, err
}

// Revoke revokes an API key, given by its ID or as a whole. Servers on the data
// folder notice it by themselves. known is false for a key that was not created
// in this data folder. Revoking a key again changes nothing. Errors carry a
// hint.
func Revoke(dataDir, key string, now time.Time) (r Record, known bool, err error) {
	id, expires := key, (*time.Time)(nil)
	var c claims
	if _, _, err := jwt.NewParser().ParseUnverified(key, &c); err == nil {
		if id = c.ID; id == "" {
			return r, false, hint.Add(errors.New("the API key has no ID (claim jti)"),
				"Remove its signing key; that revokes all API keys that it signed.")
		}
		if c.ExpiresAt != nil {
			expires = &c.ExpiresAt.Time
		}
	} else if strings.HasPrefix(key, "eyJ") { // as the header of each JWT in base64
		return r, false, hint.Add(errors.New("the API key is damaged; nothing was revoked"), "Give all of it, or its ID; 'hubbub key list' lists the IDs.")
	}
	if id == "" || len(id) > maxID {
		return r, false, hint.Add(errors.New("this is not the ID of an API key"), "'hubbub key list' lists the IDs.")
	}
	named, _ := readRecords(dataDir) // List reports those that are damaged
	if r, known = named[recordName(id)]; r.ID == "" {
		r = Record{ID: id, Expires: expires}
	}
	if r.Revoked == nil {
		now = now.UTC().Truncate(time.Second)
		r.Revoked = &now
		err = writeRecord(dataDir, r)
	}
	return r, known && r.Created != nil, err
}

// writeRecord saves a record.
func writeRecord(dataDir string, r Record) error {
	folder := filepath.Join(dataDir, recordFolder)
	raw, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		err = atomicfile.WriteFile(filepath.Join(folder, recordName(r.ID)+recordSuffix), append(raw, '\n'), 0o600)
	}
	if err != nil {
		return hint.Add(fmt.Errorf("the record of the API key could not be saved: %w", err), "Choose a data folder that you may write to.")
	}
	return nil
}

// readRecords returns all records of a data folder by their names. The error
// names the files that cannot be read; the others are returned all the same.
func readRecords(dataDir string) (map[string]Record, error) {
	entries, err := os.ReadDir(filepath.Join(dataDir, recordFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	named := map[string]Record{}
	var errs []error
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), recordSuffix)
		if !ok || strings.HasPrefix(name, ".") {
			continue // a file that is being written
		}
		var r Record
		raw, err := os.ReadFile(filepath.Join(dataDir, recordFolder, e.Name()))
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err == nil && recordName(r.ID) != name {
			err = errors.New("its name is not the hash of its ID")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("record %s cannot be used: %w", e.Name(), err))
			// It is not known whether the key was revoked.
			r = Record{Revoked: &time.Time{}}
		}
		named[name] = r
	}
	return named, errors.Join(errs...)
}

// pruneRecords deletes the records of API keys that expired long ago. Those of revoked
// ones remain: without its record a key is valid again when a clock that was ahead is set
// back.
func pruneRecords(dataDir string, now time.Time) {
	named, _ := readRecords(dataDir)
	for name, r := range named {
		if r.Revoked == nil && r.expired(now, keptRecord) {
			_ = os.Remove(filepath.Join(dataDir, recordFolder, name+recordSuffix)) // the next call tries again
		}
	}
}
