package apikeys

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
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
	// maxAccount bounds an account's name, in bytes.
	maxAccount = 128
	// maxTime bounds the times in an API key, in seconds: from 1<<63 on they overflow.
	maxTime = 1 << 62
)

// claims are the contents of an API key.
type claims struct {
	jwt.RegisteredClaims
	Plan string `json:"plan"`
}

// claimNames are the names of claims.
var claimNames = []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "plan"}

// UnmarshalJSON refuses times that are texts or overflow, which package jwt accepts. It ignores
// names in other letters, which package json accepts: they may be the issuer's own claims.
func (c *claims) UnmarshalJSON(raw []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return !slices.Contains(claimNames, name) })
	for _, name := range []string{"exp", "nbf", "iat"} {
		var at *float64
		if raw, given := all[name]; given && (json.Unmarshal(raw, &at) != nil || at != nil && math.Abs(*at) > maxTime) {
			return errors.New("a time is not a number of seconds")
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	type plain claims
	return json.Unmarshal(raw, (*plain)(c))
}

// issue signs an API key with an ID.
func (k signingKey) issue(spec Spec, id string, now time.Time) (string, error) {
	t := jwt.NewWithClaims(jwt.GetSigningMethod(k.algorithm), claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: "hubbub", Subject: spec.Account, ID: id,
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(spec.Expires)),
		},
		Plan: spec.Plan,
	})
	t.Header["kid"] = k.id
	return t.SignedString(k.sign)
}

// find returns a signing key of this folder or of another node.
func (k *Keyring) find(id string) (key signingKey, ok bool) {
	if k.folder != "" {
		key, ok = k.findLocal(id)
	}
	if !ok {
		key, ok = k.others.Load().signing[id]
	}
	return key, ok
}

// findLocal returns a signing key of the folder. It reads the file each time, which costs
// less than the verification of a signature, so that a file that is added or removed takes
// effect at once. While the file cannot be read, the key that is known remains.
func (k *Keyring) findLocal(id string) (signingKey, bool) {
	if !keyID.MatchString(id) || !filepath.IsLocal(id+keySuffix) { // on Windows, con.key may be a device
		return signingKey{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key, err := readSigningKey(k.folder, id)
	_, unread := errors.AsType[*fs.PathError](err)
	removed := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil:
		k.known[id] = key
	case removed, !unread:
		delete(k.known, id)
	}
	if err != nil && !removed && time.Since(k.logged) >= RefreshInterval { // anybody can send requests
		k.logged = time.Now()
		k.log.Warn("a signing key could not be read", "error", err)
	}
	key, ok := k.known[id]
	return key, ok
}

var errUnknownKey = errors.New("unknown signing key")

// identify verifies an API key that a signing key has signed.
func (k *Keyring) identify(key string) (Principal, bool) {
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{EdDSA, HS256}), // never "none"
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(k.now),
		jwt.WithStrictDecoding(),
	)
	var c claims
	_, err := parser.ParseWithClaims(key, &c, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		signing, ok := k.find(id)
		// The signing key determines the algorithm, so that a public key is
		// never used as an HMAC secret. Critical extensions are not supported.
		if _, critical := t.Header["crit"]; !ok || critical || t.Method.Alg() != signing.algorithm {
			return nil, errUnknownKey
		}
		return signing.verify, nil
	})
	if err != nil || !validAccount(c.Subject) {
		return Principal{}, false
	}
	return Principal{Account: c.Subject, Subscribed: c.Plan == PlanPro, Key: c.ID}, true
}

// validAccount reports whether a text can name an account.
func validAccount(s string) bool {
	return s != "" && len(s) <= maxAccount && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
