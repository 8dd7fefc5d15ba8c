package localserver

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The algorithms of API keys. Which one a key may use is decided by the
// signing key that it names, never by the API key itself.
const (
	EdDSA = "EdDSA"
	HS256 = "HS256"
)

const (
	// keysFolder holds the signing keys in the data folder, a file each, named
	// after its id. A file that is taken away makes the API keys that were
	// signed with it void.
	keysFolder = "keys"
	keyEnding  = ".pem"
	// hmacBlock is the PEM block of an HS256 secret; the others are standard.
	hmacBlock = "HMAC KEY"
	// minSecret is the shortest HS256 secret, in bytes (RFC 7518, 3.2).
	minSecret = 32
)

var keyID = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,64}\z`)

// signingKey makes and checks API keys.
type signingKey struct {
	id        string
	algorithm string
	check     any // what jwt wants for checking
	sign      any // nil for one that can only check
}

// method is the algorithm as jwt knows it.
func (k signingKey) method() jwt.SigningMethod { return jwt.GetSigningMethod(k.algorithm) }

// parseSigningKey reads a key file: an Ed25519 private key (PKCS #8), an
// Ed25519 public key, for keys that are signed elsewhere, or an HS256 secret.
func parseSigningKey(id string, raw []byte) (signingKey, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return signingKey{}, errors.New("it is not in PEM")
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
			return signingKey{id: id, algorithm: EdDSA, check: key}, nil
		}
	case hmacBlock:
		if len(block.Bytes) >= minSecret {
			return signingKey{id, HS256, block.Bytes, block.Bytes}, nil
		}
	}
	return signingKey{}, errors.New("it holds no key of a kind that is used here")
}

// readSigningKeys reads all signing keys of a data folder, the newest last: ids
// begin with the time at which they were made. Files that cannot be read are
// told in the error; the others count all the same.
func readSigningKeys(data string) ([]signingKey, error) {
	entries, err := os.ReadDir(filepath.Join(data, keysFolder))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var keys []signingKey
	var errs []error
	for _, e := range entries { // sorted by name
		id, ok := strings.CutSuffix(e.Name(), keyEnding)
		if !ok || !keyID.MatchString(id) {
			continue // an editor's, or one that is just being written
		}
		raw, err := os.ReadFile(filepath.Join(data, keysFolder, e.Name()))
		var key signingKey
		if err == nil {
			key, err = parseSigningKey(id, raw)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("signing key %s cannot be used: %w", e.Name(), err))
			continue
		}
		keys = append(keys, key)
	}
	return keys, errors.Join(errs...)
}

// MakeSigningKey adds a signing key to a data folder, readable by its owner
// only, and returns its id. New API keys are signed with the newest one; those
// that were signed with older ones stay good. A server on the folder need not
// be told.
func MakeSigningKey(data, algorithm string, now time.Time) (id string, err error) {
	key, err := makeSigningKey(data, algorithm, now)
	return key.id, err
}

func makeSigningKey(data, algorithm string, now time.Time) (signingKey, error) {
	var block pem.Block
	switch algorithm {
	case EdDSA:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return signingKey{}, err
		}
		if block.Bytes, err = x509.MarshalPKCS8PrivateKey(private); err != nil {
			return signingKey{}, err
		}
		block.Type = "PRIVATE KEY"
	case HS256:
		block.Type, block.Bytes = hmacBlock, make([]byte, minSecret)
		_, _ = rand.Read(block.Bytes) // never fails: it ends the program instead
	default:
		return signingKey{}, &hinted{fmt.Errorf("unknown algorithm %q", algorithm), "Choose EdDSA or HS256."}
	}
	var salt [4]byte
	_, _ = rand.Read(salt[:])
	id := now.UTC().Format("20060102T150405.000")
	id = strings.Replace(id, ".", "", 1) + "Z-" + hex.EncodeToString(salt[:])
	folder := filepath.Join(data, keysFolder)
	err := os.MkdirAll(folder, 0o700)
	raw := pem.EncodeToMemory(&block)
	if err == nil {
		err = writeWhole(filepath.Join(folder, id+keyEnding), raw)
	}
	if err != nil {
		return signingKey{}, &hinted{fmt.Errorf("the signing key cannot be kept: %w", err), "Choose a data folder that you may write to."}
	}
	return parseSigningKey(id, raw)
}

// KeySpec says what an API key is to be good for.
type KeySpec struct {
	Account string
	Plan    string        // PlanPro or PlanNone
	Expires time.Duration // from now
}

var accountName = regexp.MustCompile(`\A[A-Za-z0-9._@-]{1,128}\z`)

// CreateKey returns an API key, a JWT, that every server on the same data
// folder accepts, also one that is running. It makes the first signing key if
// there is none.
func CreateKey(data string, spec KeySpec, now time.Time) (string, error) {
	switch {
	case data == "":
		return "", &hinted{errors.New("a key needs the data folder of its server"), "Give the folder that the server was given with --data."}
	case !accountName.MatchString(spec.Account):
		return "", &hinted{fmt.Errorf("account %q is not a name", spec.Account), "Use up to 128 letters, digits, '.', '_', '@' and '-'."}
	case !slices.Contains([]string{PlanPro, PlanNone}, spec.Plan):
		return "", &hinted{fmt.Errorf("unknown plan %q", spec.Plan), "Choose pro, or none for a key without subscription."}
	case spec.Expires < time.Second:
		return "", &hinted{fmt.Errorf("a key that expires after %v is of no use", spec.Expires), "Give a time such as 720h."}
	}
	keys, err := readSigningKeys(data)
	i := len(keys) - 1
	for i >= 0 && keys[i].sign == nil {
		i--
	}
	var key signingKey
	switch {
	case i >= 0:
		key = keys[i]
	case err != nil:
		return "", &hinted{err, "Check the files in the folder keys of the data folder."}
	default:
		if key, err = makeSigningKey(data, EdDSA, now); err != nil {
			return "", err
		}
	}
	return key.issue(spec, now)
}
