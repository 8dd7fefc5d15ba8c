package apikeys

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"hubbub/protocol/atomicfile"
	"hubbub/protocol/hint"
)

// The signature algorithms of API keys. The signing key determines which one
// is used, never the API key itself.
const (
	EdDSA = "EdDSA"
	HS256 = "HS256"
)

const (
	// keyFolder holds the signing keys in the data folder, one file each,
	// named after its id.
	keyFolder = "keys"
	keySuffix = ".pem"
	// hmacBlock is the PEM block type of an HS256 secret; the other types are
	// standard.
	hmacBlock = "HMAC KEY"
	// minSecret is the length of the shortest HS256 secret, in bytes (RFC 7518,
	// section 3.2).
	minSecret = 32
)

var keyID = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,64}\z`)

// signingKey signs and verifies API keys.
type signingKey struct {
	id        string
	algorithm string
	verify    any // the key that package jwt verifies with
	sign      any // the key that package jwt signs with; nil for a public key
}

// public encodes what other nodes need to verify API keys of this signing key.
func (k signingKey) public() []byte {
	if k.algorithm == HS256 {
		return pem.EncodeToMemory(&pem.Block{Type: hmacBlock, Bytes: k.verify.([]byte)})
	}
	der, err := x509.MarshalPKIXPublicKey(k.verify)
	if err != nil { // every Ed25519 key can be encoded
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// parseSigningKey decodes a key file: an Ed25519 private key (PKCS #8), an
// Ed25519 public key, for API keys that are signed elsewhere, or an HS256
// secret.
func parseSigningKey(id string, raw []byte) (signingKey, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return signingKey{}, errors.New("it is not a PEM file")
	}
	switch block.Type {
	case "PRIVATE KEY":
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if key, ok := parsed.(ed25519.PrivateKey); err == nil && ok {
			return signingKey{id, EdDSA, key.Public(), key}, nil
		}
	case "PUBLIC KEY":
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if key, ok := parsed.(ed25519.PublicKey); err == nil && ok {
			return signingKey{id: id, algorithm: EdDSA, verify: key}, nil
		}
	case hmacBlock:
		if len(block.Bytes) >= minSecret {
			return signingKey{id, HS256, block.Bytes, block.Bytes}, nil
		}
	}
	return signingKey{}, errors.New("it does not hold an Ed25519 key or an HS256 secret")
}

// readSigningKeys reads all signing keys of a data folder, oldest first: an id
// begins with the time of creation. The error names the files that cannot be
// used; the other keys are returned all the same. After an error of the folder
// itself there are none: nil.
func readSigningKeys(dataDir string) ([]signingKey, error) {
	entries, err := os.ReadDir(filepath.Join(dataDir, keyFolder))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	keys := []signingKey{}
	var errs []error
	for _, e := range entries { // sorted by name
		id, ok := strings.CutSuffix(e.Name(), keySuffix)
		if !ok || !keyID.MatchString(id) {
			continue // an editor's file, or a file that is being written
		}
		key, err := readSigningKey(dataDir, id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		keys = append(keys, key)
	}
	return keys, errors.Join(errs...)
}

// readSigningKey reads the signing key of a data folder with an id.
func readSigningKey(dataDir, id string) (key signingKey, err error) {
	raw, err := os.ReadFile(filepath.Join(dataDir, keyFolder, id+keySuffix))
	if err == nil {
		key, err = parseSigningKey(id, raw)
	}
	if err != nil {
		err = fmt.Errorf("signing key %s%s cannot be used: %w", id, keySuffix, err)
	}
	return key, err
}

// Files are the secrets of a data folder: the folder of the signing keys, the files
// in it, and the secret of the webhooks.
func Files(dataDir string) []string {
	folder := filepath.Join(dataDir, keyFolder)
	files := []string{folder, filepath.Join(dataDir, webhookFile)}
	names, _ := fs.Glob(os.DirFS(folder), "*"+keySuffix) // the pattern is valid
	for _, name := range names {
		files = append(files, filepath.Join(folder, name))
	}
	return files
}

// CreateSigningKey adds a signing key to a data folder, readable by its owner
// only, and returns its id. New API keys are signed with the newest signing
// key; API keys of older ones stay valid. A running server picks it up by
// itself.
func CreateSigningKey(dataDir, algorithm string, now time.Time) (id string, err error) {
	key, err := createSigningKey(dataDir, algorithm, now)
	return key.id, err
}

func createSigningKey(dataDir, algorithm string, now time.Time) (signingKey, error) {
	var block pem.Block
	switch algorithm {
	case EdDSA:
		_, private, _ := ed25519.GenerateKey(nil) // never returns an error, nor does what follows
		block.Type = "PRIVATE KEY"
		block.Bytes, _ = x509.MarshalPKCS8PrivateKey(private)
	case HS256:
		block.Type, block.Bytes = hmacBlock, make([]byte, minSecret)
		_, _ = rand.Read(block.Bytes) // never returns an error
	default:
		return signingKey{}, hint.Add(fmt.Errorf("unknown algorithm %q", algorithm), "Choose EdDSA or HS256.")
	}
	var salt [4]byte
	_, _ = rand.Read(salt[:])
	id := now.UTC().Format("20060102T150405.000")
	id = strings.Replace(id, ".", "", 1) + "Z-" + hex.EncodeToString(salt[:])
	folder := filepath.Join(dataDir, keyFolder)
	err := os.MkdirAll(folder, 0o700)
	raw := pem.EncodeToMemory(&block)
	if err == nil {
		err = atomicfile.WriteFile(filepath.Join(folder, id+keySuffix), raw, 0o600)
	}
	if err != nil {
		return signingKey{}, hint.Add(fmt.Errorf("the signing key could not be saved: %w", err), "Choose a data folder that you may write to.")
	}
	return parseSigningKey(id, raw)
}

// Spec is what an API key is to be valid for.
type Spec struct {
	Account string
	Plan    string        // PlanPro or PlanNone
	Expires time.Duration // from now
}

var accountName = regexp.MustCompile(`\A[A-Za-z0-9._@-]{1,128}\z`)

// CheckAccount returns an error with a hint for what is no name of an account.
func CheckAccount(account string) error {
	if accountName.MatchString(account) {
		return nil
	}
	return hint.Add(fmt.Errorf("account %q is not a name", account), "Use up to 128 letters, digits, '.', '_', '@' and '-'.")
}

// Create returns an API key, a JWT, that every server on the same data folder
// accepts, also one that is running, and saves its record for List. It creates
// the first signing key if there is none. Its errors carry a hint.
func Create(dataDir string, spec Spec, now time.Time) (string, error) {
	switch {
	case dataDir == "":
		return "", hint.Add(errors.New("an API key needs the data folder of its server"), "Give the folder that the server was given with --data.")
	case CheckAccount(spec.Account) != nil:
		return "", CheckAccount(spec.Account)
	case !slices.Contains([]string{PlanPro, PlanNone}, spec.Plan):
		return "", hint.Add(fmt.Errorf("unknown plan %q", spec.Plan), "Choose pro, or none for a key without subscription.")
	case spec.Expires < time.Second:
		return "", hint.Add(fmt.Errorf("an API key cannot expire after %v", spec.Expires), "Give a time such as 720h.")
	}
	keys, err := readSigningKeys(dataDir)
	keys = slices.DeleteFunc(keys, func(k signingKey) bool { return k.sign == nil })
	var key signingKey
	switch {
	case len(keys) > 0:
		key = keys[len(keys)-1] // the newest
	case err != nil:
		return "", hint.Add(err, "Check the files in the folder keys of the data folder.")
	default:
		if key, err = createSigningKey(dataDir, EdDSA, now); err != nil {
			return "", err
		}
	}
	pruneRecords(dataDir, now)
	created := now.UTC().Truncate(time.Second)
	expires := created.Add(spec.Expires)
	r := Record{ID: rand.Text(), Account: spec.Account, Plan: spec.Plan, SigningKey: key.id, Created: &created, Expires: &expires}
	if err := writeRecord(dataDir, r); err != nil {
		return "", err
	}
	return key.issue(spec, r.ID, now)
}
