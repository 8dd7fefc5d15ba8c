package apikeys

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hubbub/localserver/store"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

const staticKey = "key-for-tests"

func mustCreate(t testing.TB, dir, account, plan string, now time.Time) string {
	t.Helper()
	return testkit.Must(Create(dir, Spec{account, plan, time.Hour}, now))(t)
}

// ringOf is a keyring of a data folder and one static key.
func ringOf(dir string, now func() time.Time) *Keyring {
	k, err := NewKeyring([]string{staticKey}, dir, now, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	return k
}

func accepts(k *Keyring, key string) bool {
	_, ok := k.Identify(key)
	return ok
}

func TestStaticKeys(t *testing.T) {
	k := ringOf("", time.Now)
	if who, ok := k.Identify(staticKey); !ok || who != (Principal{Account: DefaultAccount, Subscribed: true}) {
		t.Errorf("%+v %v", who, ok)
	}
	for _, key := range []string{"", staticKey + "x", staticKey[1:], strings.ToUpper(staticKey)} {
		if accepts(k, key) {
			t.Errorf("%q is accepted", key)
		}
	}
}

// A signing key is picked up while the keyring is in use, API keys of older
// signing keys stay valid, and those of a removed one do not.
func TestSigningKeysComeAndGo(t *testing.T) {
	dir := t.TempDir()
	k := ringOf(dir, time.Now)
	now := time.Now()
	first := mustCreate(t, dir, "a", PlanPro, now)
	if !accepts(k, first) {
		t.Fatal("a new key is not accepted")
	}
	id := testkit.Must(CreateSigningKey(dir, HS256, now.Add(time.Second)))(t)
	second := mustCreate(t, dir, "a", PlanPro, now)
	if raw, err := os.ReadFile(filepath.Join(dir, keyFolder, id+keySuffix)); err != nil || bytes.Contains(raw, []byte("AAAAAAAA")) {
		t.Errorf("a secret of zeros, %v", err)
	}
	for key, algorithm := range map[string]string{first: "EdDSA", second: "HS256"} {
		head, _ := base64.RawURLEncoding.DecodeString(strings.Split(key, ".")[0])
		if !strings.Contains(string(head), `"alg":"`+algorithm+`"`) {
			t.Errorf("signed as %s, want %s", head, algorithm)
		}
		if !accepts(k, key) {
			t.Errorf("the key of %s is not accepted", algorithm)
		}
	}
	folder := filepath.Join(dir, keyFolder)
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		testkit.HasMode(t, filepath.Join(folder, f.Name()), 0o600)
	}
	testkit.HasMode(t, folder, 0o700)
	testkit.NoError(t, os.Remove(filepath.Join(folder, id+keySuffix)))
	if accepts(k, second) || !accepts(k, first) {
		t.Error("removing a signing key does not revoke its API keys, or revokes others")
	}
	// A file that is no key affects no other key.
	testkit.NoError(t, os.WriteFile(filepath.Join(folder, "zzz.pem"), []byte("junk"), 0o600))
	if !accepts(k, first) || !accepts(k, mustCreate(t, dir, "b", PlanPro, now)) {
		t.Error("an unreadable file in the folder affects other keys")
	}
	// An API key that was signed elsewhere.
	public, private, _ := ed25519.GenerateKey(rand.Reader)
	der, _ := x509.MarshalPKIXPublicKey(public)
	testkit.NoError(t, os.WriteFile(filepath.Join(folder, "elsewhere.pem"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	foreign, _ := signingKey{"elsewhere", EdDSA, public, private}.issue(Spec{"c", PlanPro, time.Hour}, "issued-elsewhere", now)
	if !accepts(k, foreign) {
		t.Error("a key of a public key in the folder is not accepted")
	}
}

// A signing key that could not be used is accepted when it is repaired, which does
// not change its folder. While the folder cannot be read, the known keys remain.
func TestUnreadableSigningKeys(t *testing.T) {
	dir := t.TempDir()
	key := mustCreate(t, dir, "a", PlanPro, time.Now())
	folder := filepath.Join(dir, keyFolder)
	files := testkit.Files(t, folder, "*"+keySuffix)
	good := testkit.Must(os.ReadFile(files[0]))(t)
	testkit.NoError(t, os.WriteFile(files[0], nil, 0o600))
	old := time.Now().Add(-time.Hour)
	testkit.NoError(t, os.Chtimes(folder, old, old))
	k := ringOf(dir, time.Now)
	if accepts(k, key) {
		t.Error("a key is accepted that an empty file has signed")
	}
	testkit.NoError(t, os.WriteFile(files[0], good, 0o600))
	if !accepts(k, key) {
		t.Error("the key of a repaired file is refused")
	}

	testkit.NoError(t, os.Rename(folder, folder+"-away"))
	testkit.NoError(t, os.WriteFile(folder, nil, 0o600))
	if !accepts(k, key) {
		t.Error("a known key is refused while the folder cannot be read")
	}
	testkit.NoError(t, os.Remove(folder))
	if accepts(k, key) {
		t.Error("a key is accepted without the folder")
	}
}

// A folder that cannot be read from the start, as one that root has made, is not read and
// logged for each request: anybody can send one.
func TestUnreadableFolderIsLoggedOnce(t *testing.T) {
	dir, log := t.TempDir(), &strings.Builder{}
	key := mustCreate(t, t.TempDir(), "a", PlanPro, time.Now())
	folder := filepath.Join(dir, keyFolder)
	testkit.NoError(t, os.WriteFile(folder, nil, 0o600))
	old := time.Now().Add(-time.Hour)
	testkit.NoError(t, os.Chtimes(folder, old, old))
	k := testkit.Must(NewKeyring(nil, dir, time.Now, slog.New(slog.NewTextHandler(log, nil))))(t)
	const requests = 1000
	for range requests {
		if accepts(k, key) {
			t.Fatal("an unknown key is accepted")
		}
	}
	if n := strings.Count(log.String(), "\n"); n == 0 || n > requests/10 {
		t.Errorf("%d lines in the log", n)
	}
}

func TestPlanAndExpiry(t *testing.T) {
	dir := t.TempDir()
	issued := time.Now()
	now := issued
	k := ringOf(dir, func() time.Time { return now })
	for plan, subscribed := range map[string]bool{PlanPro: true, PlanNone: false} {
		key := mustCreate(t, dir, "a", plan, issued)
		now = issued.Add(time.Hour - 2*time.Second)
		if who, ok := k.Identify(key); !ok || who.Account != "a" || who.Subscribed != subscribed || who.Key == "" {
			t.Errorf("%s before it expires: %+v %v", plan, who, ok)
		}
		now = issued.Add(time.Hour + 2*time.Second)
		if accepts(k, key) {
			t.Errorf("%s is accepted after it expired", plan)
		}
	}
}

// forgeries are API keys that must not be accepted, made from a valid one of an
// EdDSA signing key whose public half is known to everybody.
func forgeries(t testing.TB, key signingKey, good string, now time.Time) map[string]string {
	t.Helper()
	parts := strings.Split(good, ".")
	segment := func(v any) string {
		raw := testkit.Must(json.Marshal(v))(t)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	body := map[string]any{"sub": "a", "plan": "pro", "exp": now.Add(time.Hour).Unix()}
	sign := func(method jwt.SigningMethod, head, body map[string]any, with any) string {
		t.Helper()
		text := segment(head) + "." + segment(body)
		raw := testkit.Must(method.Sign(text, with))(t)
		return text + "." + base64.RawURLEncoding.EncodeToString(raw)
	}
	head := func(alg string, more ...any) map[string]any {
		h := map[string]any{"alg": alg, "typ": "JWT", "kid": key.id}
		for i := 0; i < len(more); i += 2 {
			h[more[i].(string)] = more[i+1]
		}
		return h
	}
	without := func(field string, value any) map[string]any {
		b := maps.Clone(body)
		if delete(b, field); value != nil {
			b[field] = value
		}
		return b
	}
	renamed := func(field, name string) map[string]any {
		b := without(field, nil)
		b[name] = body[field]
		return b
	}
	public := key.verify.(ed25519.PublicKey)
	publicDER, _ := x509.MarshalPKIXPublicKey(public)
	_, stranger, _ := ed25519.GenerateKey(rand.Reader)
	e, hs := jwt.SigningMethodEdDSA, jwt.SigningMethodHS256
	flipped := []byte(parts[2])
	flipped[0] ^= 1
	return map[string]string{
		"alg none":                  segment(head("none")) + "." + segment(body) + ".",
		"alg None, any case":        segment(head("nOnE")) + "." + segment(body) + ".",
		"alg none, old signature":   segment(head("none")) + "." + parts[1] + "." + parts[2],
		"public key as HS256":       sign(hs, head("HS256"), body, []byte(public)),
		"public key in DER":         sign(hs, head("HS256"), body, publicDER),
		"public key in PEM":         sign(hs, head("HS256"), body, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER})),
		"empty secret":              sign(hs, head("HS256"), body, []byte{}),
		"another algorithm":         sign(jwt.SigningMethodHS512, head("HS512"), body, []byte(public)),
		"a stranger's key":          sign(e, head("EdDSA"), body, stranger),
		"a key sent along":          sign(e, head("EdDSA", "jwk", map[string]any{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(stranger.Public().(ed25519.PublicKey))}), body, stranger),
		"unknown kid":               sign(e, head("EdDSA", "kid", "x"), body, key.sign),
		"kid that is a path":        sign(e, head("EdDSA", "kid", "../keys/"+key.id), body, key.sign),
		"kid that is a number":      sign(e, head("EdDSA", "kid", 1), body, key.sign),
		"no kid":                    sign(e, map[string]any{"alg": "EdDSA"}, body, key.sign),
		"critical extension":        sign(e, head("EdDSA", "crit", []string{"b64"}, "b64", false), body, key.sign),
		"expiry in capital letters": sign(e, head("EdDSA"), renamed("exp", "EXP"), key.sign),
		"account of another claim":  sign(e, head("EdDSA"), renamed("sub", "\u017fub"), key.sign), // a long s, which is equal to s in any case
		"no expiry":                 sign(e, head("EdDSA"), without("exp", nil), key.sign),
		"expired":                   sign(e, head("EdDSA"), without("exp", now.Add(-time.Hour).Unix()), key.sign),
		"expiry that is a text":     sign(e, head("EdDSA"), without("exp", "tomorrow"), key.sign),
		"expiry in quotes":          sign(e, head("EdDSA"), without("exp", fmt.Sprint(now.Add(time.Hour).Unix())), key.sign),
		"issued in quotes":          sign(e, head("EdDSA"), without("iat", fmt.Sprint(now.Unix())), key.sign),
		"not valid yet":             sign(e, head("EdDSA"), without("nbf", now.Add(time.Hour).Unix()), key.sign),
		"never valid":               sign(e, head("EdDSA"), without("nbf", 1e300), key.sign),
		"no account":                sign(e, head("EdDSA"), without("sub", nil), key.sign),
		"account with a line break": sign(e, head("EdDSA"), without("sub", "a\nb"), key.sign),
		"account without end":       sign(e, head("EdDSA"), without("sub", strings.Repeat("a", 129)), key.sign),
		"changed body":              parts[0] + "." + segment(without("sub", "root")) + "." + parts[2],
		"changed signature":         parts[0] + "." + parts[1] + "." + string(flipped),
		"no signature":              parts[0] + "." + parts[1] + ".",
		"padded":                    good + "=",
		"four parts":                good + ".x",
		"two parts":                 parts[0] + "." + parts[1],
		"dots":                      "..",
	}
}

func TestSpecIsValidated(t *testing.T) {
	dir := t.TempDir()
	for _, spec := range []Spec{{"", PlanPro, time.Hour}, {"a b", PlanPro, time.Hour}, {"a\n", PlanPro, time.Hour}, {strings.Repeat("a", 129), PlanPro, time.Hour},
		{"a", "gold", time.Hour}, {"a", "", time.Hour}, {"a", PlanPro, 0}, {"a", PlanPro, -time.Hour}} {
		_, err := Create(dir, spec, time.Now())
		if hint.Of(err) == "" {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Error("an invalid request has created a signing key")
	}
	if _, err := Create("", Spec{"a", PlanPro, time.Hour}, time.Now()); err == nil {
		t.Error("a key without a data folder")
	}
	if _, err := CreateSigningKey(dir, "RS256", time.Now()); err == nil {
		t.Error("a signing key of an unknown algorithm")
	}
}

// sharedKeys is a store in memory that can fail.
type sharedKeys struct {
	mu      sync.Mutex
	keys    []store.SharedKey
	version uint64
	reads   int
	failing bool
}

var errStore = errors.New("the store does not respond")

func (s *sharedKeys) change(f func([]store.SharedKey) []store.SharedKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing {
		return errStore
	}
	s.keys = f(s.keys)
	s.version++
	return nil
}

func (s *sharedKeys) PublishKey(_ context.Context, key store.SharedKey) error {
	if raw, err := json.Marshal(key); err != nil || len(raw) > 16<<10 { // more than the store takes
		return store.ErrTooLarge
	}
	return s.change(func(keys []store.SharedKey) []store.SharedKey { return append(keys, key) })
}

func (s *sharedKeys) WithdrawKey(_ context.Context, key store.SharedKey) error {
	return s.change(func(keys []store.SharedKey) []store.SharedKey {
		return slices.DeleteFunc(keys, func(k store.SharedKey) bool { return k.Origin == key.Origin && k.ID == key.ID })
	})
}

func (s *sharedKeys) PublishedKeys(_ context.Context, seen uint64) ([]store.SharedKey, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.failing {
		return nil, 0, errStore
	}
	if s.version+1 == seen {
		return nil, seen, nil
	}
	return slices.Clone(s.keys), s.version + 1, nil
}

// On a cluster every node accepts the API keys of every data folder, until
// their signing key is removed. Private keys are not published.
func TestNodesExchangeSigningKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sharedKeys{}
		dirA, dirB := t.TempDir(), t.TempDir()
		keyA := mustCreate(t, dirA, "a", PlanPro, time.Now())
		a, b, none := joined(t, dirA, s), joined(t, dirB, s), joined(t, "", s)
		for name, k := range map[string]*Keyring{"the folder's node": a, "another folder's node": b, "a node without a folder": none} {
			if !accepts(k, keyA) {
				t.Errorf("%s refuses the key", name)
			}
		}
		if len(s.keys) != 1 || strings.Contains(string(s.keys[0].Raw), "PRIVATE") {
			t.Errorf("published: %+v", s.keys)
		}

		// A new signing key is known after the next exchange, and unknown ones cost
		// no look.
		testkit.Must(CreateSigningKey(dirB, HS256, time.Now()))(t)
		keyB := mustCreate(t, dirB, "b", PlanPro, time.Now())
		refresh(t, b, none)
		if !accepts(none, keyB) {
			t.Error("a new signing key is not known")
		}
		unknown := mustCreate(t, t.TempDir(), "c", PlanPro, time.Now())
		before := s.reads
		for range 10 {
			if accepts(none, unknown) {
				t.Fatal("a key of no node is accepted")
			}
		}
		testkit.Equal(t, s.reads, before, s.reads-before, "reads")

		// A key that cannot be used affects no other, and a store that does not
		// respond leaves the last keys valid.
		_ = s.PublishKey(t.Context(), store.SharedKey{Origin: "other", ID: "damaged", Raw: []byte("junk")})
		s.failing = true
		if err := a.Refresh(t.Context()); !errors.Is(err, errStore) || !accepts(none, keyA) {
			t.Errorf("without the store: %v", err)
		}
		joined(t, t.TempDir(), s) // a node can start without the store
		s.failing = false
		refresh(t, none)
		if !accepts(none, keyA) || !accepts(none, keyB) {
			t.Error("keys are lost beside a damaged one")
		}

		// The name of a folder is kept, so that a restarted node withdraws what
		// was removed meanwhile.
		files := testkit.Files(t, filepath.Join(dirA, keyFolder), "*"+keySuffix)
		if len(files) != 1 {
			t.Fatal(files)
		}
		testkit.NoError(t, os.WriteFile(files[0], []byte("junk"), 0o600))
		refresh(t, a, none)
		if !accepts(none, keyA) {
			t.Error("a signing key that cannot be read now is withdrawn")
		}
		testkit.NoError(t, os.Remove(files[0]))
		joined(t, dirA, s)
		refresh(t, none, b)
		if accepts(none, keyA) || accepts(b, keyA) || !accepts(none, keyB) {
			t.Error("removing a signing key does not revoke its API keys on the other nodes, or revokes others")
		}
	})
}

// hungKeys do not respond.
type hungKeys struct{ sharedKeys }

func (*hungKeys) PublishedKeys(ctx context.Context, seen uint64) ([]store.SharedKey, uint64, error) {
	<-ctx.Done()
	return nil, seen, ctx.Err()
}

// A request with a key of another node does not wait for an exchange.
func TestKnownKeysDuringAnExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dir := &sharedKeys{}, t.TempDir()
		key := mustCreate(t, dir, "a", PlanPro, time.Now())
		joined(t, dir, s)
		none := joined(t, "", s)
		none.exchange.store = &hungKeys{}
		ctx, cancel := context.WithTimeout(t.Context(), refreshTimeout)
		defer cancel()
		go func() { _ = none.Refresh(ctx) }()
		synctest.Wait()
		began := time.Now()
		if !accepts(none, key) || time.Since(began) != 0 {
			t.Errorf("the key was looked up for %v", time.Since(began))
		}
		<-ctx.Done()
	})
}

// Whatever text is given as an API key, it is refused unless it was signed
// here.
func FuzzAPIKey(f *testing.F) {
	dir := f.TempDir()
	now := time.Unix(1_900_000_000, 0)
	good := mustCreate(f, dir, "a", PlanPro, now)
	keys := testkit.Must(readSigningKeys(dir))(f)
	f.Add(good)
	for _, key := range forgeries(f, keys[0], good, now) {
		f.Add(key)
	}
	k := ringOf(dir, func() time.Time { return now })
	if !accepts(k, good) {
		f.Error("the valid key is not accepted")
	}
	if accepts(ringOf("", func() time.Time { return now }), good) {
		f.Error("a keyring without a data folder accepts a signed key")
	}
	f.Fuzz(func(t *testing.T, key string) {
		if who, ok := k.Identify(key); ok && key != good && key != staticKey {
			t.Errorf("%q is accepted as %+v", key, who)
		}
	})
}
