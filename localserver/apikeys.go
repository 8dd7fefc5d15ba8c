package localserver

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// The plans that an API key can name. Any other is no subscription.
const (
	PlanPro  = "pro"
	PlanNone = "none"
)

const (
	// keyLeeway forgives clocks that differ a little when a key expires.
	keyLeeway = 10 * time.Second
	// maxAccount bounds an account's name, in bytes.
	maxAccount = 128
	// settled is how old a change of the folder of keys must be before its
	// time tells that nothing has changed since: file systems tell times
	// coarsely.
	settled = 2 * time.Second
)

// claims are what an API key says.
type claims struct {
	jwt.RegisteredClaims
	Plan string `json:"plan"`
}

// issue signs an API key.
func (k signingKey) issue(spec KeySpec, now time.Time) (string, error) {
	t := jwt.NewWithClaims(k.method(), claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: "hubbub", Subject: spec.Account, ID: rand.Text(),
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(spec.Expires)),
		},
		Plan: spec.Plan,
	})
	t.Header["kid"] = k.id
	return t.SignedString(k.sign)
}

// signedKeys checks API keys against the signing keys of a data folder, and of
// the other nodes' if there are any. It sees keys that come and go while it
// runs.
type signedKeys struct {
	data   string
	now    func() time.Time
	log    *slog.Logger
	shared *sharedKeys // nil unless other nodes have keys as well

	mu      sync.Mutex
	keys    map[string]signingKey
	changed time.Time // of the folder, when it was read
	read    time.Time
}

func newSignedKeys(data string, now func() time.Time, log *slog.Logger) *signedKeys {
	return &signedKeys{data: data, now: now, log: log}
}

// key finds a signing key, in the folder or at the other nodes.
func (s *signedKeys) key(id string) (k signingKey, ok bool) {
	if s.data != "" {
		k, ok = s.ownKey(id)
	}
	if !ok && s.shared != nil {
		k, ok = s.shared.key(id)
	}
	return k, ok
}

// ownKey finds a signing key in the folder. Looking whether the folder has
// changed costs a few microseconds, so a key that was taken away is void at
// once.
func (s *signedKeys) ownKey(id string) (signingKey, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(filepath.Join(s.data, keysFolder))
	if err != nil {
		s.keys = nil
		return signingKey{}, false
	}
	if at := info.ModTime(); s.keys == nil || !at.Equal(s.changed) || s.read.Sub(at) < settled {
		s.reload()
		s.changed, s.read = at, time.Now()
	}
	k, ok := s.keys[id]
	return k, ok
}

func (s *signedKeys) reload() {
	keys, err := readSigningKeys(s.data)
	if err != nil {
		s.log.Warn("signing keys", "error", err)
	}
	s.keys = make(map[string]signingKey, len(keys))
	for _, k := range keys {
		s.keys[k.id] = k
	}
}

var errKey = errors.New("not a key of ours")

// identify tells whose API key it is and what it is good for.
func (s *signedKeys) identify(key string) (principal, bool) {
	if s.data == "" && s.shared == nil || strings.Count(key, ".") != 2 {
		return principal{}, false
	}
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{EdDSA, HS256}), // never "none"
		jwt.WithExpirationRequired(), jwt.WithLeeway(keyLeeway), jwt.WithTimeFunc(s.now),
		jwt.WithStrictDecoding(),
	)
	var c claims
	_, err := parser.ParseWithClaims(key, &c, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		k, ok := s.key(id)
		// The signing key decides on the algorithm: a public key is never
		// taken for a secret. And extensions that must be understood are not.
		if _, critical := t.Header["crit"]; !ok || critical || t.Method.Alg() != k.algorithm {
			return nil, errKey
		}
		return k.check, nil
	})
	if err != nil || !isAccount(c.Subject) {
		return principal{}, false
	}
	return principal{account: c.Subject, subscribed: c.Plan == PlanPro}, true
}

// isAccount tells whether a text can name an account.
func isAccount(s string) bool {
	return s != "" && len(s) <= maxAccount && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
