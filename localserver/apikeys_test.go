package localserver

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// signedOnly makes a server of a data folder, without static keys.
func signedOnly(dir string) func(*Options) {
	return func(o *Options) { o.DataDir, o.APIKeys = dir, nil }
}

func mustKey(t testing.TB, dir, account, plan string, life time.Duration, now time.Time) string {
	t.Helper()
	key, err := CreateKey(dir, KeySpec{account, plan, life}, now)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// accepts tells what GET /v1/test answers to a key.
func (h *host) accepts(key string) int {
	h.t.Helper()
	res := h.do("GET", "/v1/test", key, nil)
	if res.StatusCode != 200 {
		res.apiError(h.t, 401)
	}
	return res.StatusCode
}

// A key that is made while the server runs is accepted, keys of older signing
// keys stay good, and those of one that was taken away do not.
func TestKeysComeAndGo(t *testing.T) {
	dir := t.TempDir()
	h := serve(t, signedOnly(dir))
	now := time.Now()
	first := mustKey(t, dir, "a", PlanPro, time.Hour, now)
	if h.accepts(first) != 200 {
		t.Fatal("a new key is not accepted")
	}
	id, err := MakeSigningKey(dir, HS256, now.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	second := mustKey(t, dir, "a", PlanPro, time.Hour, now)
	for key, algorithm := range map[string]string{first: "EdDSA", second: "HS256"} {
		head, _ := base64.RawURLEncoding.DecodeString(strings.Split(key, ".")[0])
		if !strings.Contains(string(head), `"alg":"`+algorithm+`"`) {
			t.Errorf("signed as %s, want %s", head, algorithm)
		}
		if h.accepts(key) != 200 {
			t.Errorf("the key of %s is not accepted", algorithm)
		}
	}
	folder := filepath.Join(dir, keysFolder)
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", f.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: mode %v, %v", info.Mode(), err)
	}
	if err := os.Remove(filepath.Join(folder, id+keyEnding)); err != nil {
		t.Fatal(err)
	}
	if h.accepts(second) != 401 || h.accepts(first) != 200 {
		t.Error("taking a signing key away does not end its keys, or ends others")
	}
	// What is no key in the folder harms nobody.
	if err := os.WriteFile(filepath.Join(folder, "zzz.pem"), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h.accepts(first) != 200 || h.accepts(mustKey(t, dir, "b", PlanPro, time.Hour, now)) != 200 {
		t.Error("junk in the folder breaks keys")
	}
	// A key that was signed elsewhere.
	public, private, _ := ed25519.GenerateKey(rand.Reader)
	der, _ := x509.MarshalPKIXPublicKey(public)
	if err := os.WriteFile(filepath.Join(folder, "elsewhere.pem"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign, _ := signingKey{"elsewhere", EdDSA, public, private}.issue(KeySpec{"c", PlanPro, time.Hour}, now)
	if h.accepts(foreign) != 200 {
		t.Error("a key of a public key in the folder is not accepted")
	}
}

func TestPlanAndExpiry(t *testing.T) {
	dir := t.TempDir()
	clock := newClock()
	h := serve(t, signedOnly(dir), clock.use)
	none := mustKey(t, dir, "a", PlanNone, time.Hour, clock.now())
	pro := mustKey(t, dir, "a", PlanPro, time.Hour, clock.now())
	if h.accepts(none) != 200 {
		t.Error("a key without subscription cannot test the connection")
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/live", "{}"}, {"POST", "/v1/live", "["}, {"GET", "/v1/live/x", ""},
		{"POST", "/v1/media/input", `{"url":"media://x"}`}, {"POST", "/v1/media/output", "{}"},
	} {
		h.do(c.method, c.path, none, strings.NewReader(c.body)).apiError(t, 402)
		if res := h.do(c.method, c.path, pro, strings.NewReader(c.body)); res.StatusCode == 402 || res.StatusCode == 401 {
			t.Errorf("%s %s with a subscription: %d", c.method, c.path, res.StatusCode)
		}
	}
	clock.move(time.Hour + keyLeeway - 2*time.Second)
	if h.accepts(pro) != 200 {
		t.Error("no leeway")
	}
	clock.move(4 * time.Second)
	if h.accepts(pro) != 401 {
		t.Error("an expired key is accepted")
	}
}

// Accounts do not see each other's streams and media.
func TestAccountsAreApart(t *testing.T) {
	dir := t.TempDir()
	h := serve(t, func(o *Options) { o.DataDir = dir })
	other := mustKey(t, dir, "other", PlanPro, time.Hour, time.Now())
	l := h.create()
	h.do("GET", "/v1/live/"+l.ID, other, nil).apiError(t, 404)
	h.put("media://x", "mine")
	h.do("POST", "/v1/media/output", other, strings.NewReader(`{"url":"media://x"}`)).apiError(t, 404)
	s := h.open()
	s.end()
	s.rest()
	h.becomes(s.id, "done")
	h.get("media://live/" + s.id + "/turns.rttm")
	h.do("POST", "/v1/media/output", other, strings.NewReader(`{"url":"media://live/`+s.id+`/turns.rttm"}`)).apiError(t, 404)
}

// forgeries are keys that must not open anything, made from a good one of an
// EdDSA signing key whose public half everybody may know.
func forgeries(t testing.TB, key signingKey, good string, now time.Time) map[string]string {
	t.Helper()
	parts := strings.Split(good, ".")
	segment := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	body := map[string]any{"sub": "a", "plan": "pro", "exp": now.Add(time.Hour).Unix()}
	sign := func(method jwt.SigningMethod, head, body map[string]any, with any) string {
		t.Helper()
		text := segment(head) + "." + segment(body)
		raw, err := method.Sign(text, with)
		if err != nil {
			t.Fatal(err)
		}
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
		b := map[string]any{}
		for k, v := range body {
			b[k] = v
		}
		if delete(b, field); value != nil {
			b[field] = value
		}
		return b
	}
	public := key.check.(ed25519.PublicKey)
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
		"no expiry":                 sign(e, head("EdDSA"), without("exp", nil), key.sign),
		"expired":                   sign(e, head("EdDSA"), without("exp", now.Add(-time.Hour).Unix()), key.sign),
		"expiry that is a text":     sign(e, head("EdDSA"), without("exp", "tomorrow"), key.sign),
		"not valid yet":             sign(e, head("EdDSA"), without("nbf", now.Add(time.Hour).Unix()), key.sign),
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

func TestForgedKeysOpenNothing(t *testing.T) {
	dir := t.TempDir()
	h := serve(t, signedOnly(dir))
	now := time.Now()
	good := mustKey(t, dir, "a", PlanPro, time.Hour, now)
	keys, err := readSigningKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if h.accepts(good) != 200 {
		t.Fatal("the good one is not accepted")
	}
	message := h.do("GET", "/v1/test", "", nil).apiError(t, 401).Message
	for name, key := range forgeries(t, keys[0], good, now) {
		if e := h.do("GET", "/v1/test", key, nil).apiError(t, 401); e.Message != message {
			t.Errorf("%s: %q tells more than %q", name, e.Message, message)
		}
	}
	// A server without the folder takes none.
	without := serve(t)
	if without.accepts(good) != 401 {
		t.Error("a server without a data folder accepts a signed key")
	}
}

func TestKeySpecIsChecked(t *testing.T) {
	dir := t.TempDir()
	for _, spec := range []KeySpec{{"", PlanPro, time.Hour}, {"a b", PlanPro, time.Hour}, {"a\n", PlanPro, time.Hour}, {strings.Repeat("a", 129), PlanPro, time.Hour},
		{"a", "gold", time.Hour}, {"a", "", time.Hour}, {"a", PlanPro, 0}, {"a", PlanPro, -time.Hour}} {
		_, err := CreateKey(dir, spec, time.Now())
		var h interface{ Hint() string }
		if !errors.As(err, &h) || h.Hint() == "" {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Error("a wrong wish has made a signing key")
	}
	if _, err := CreateKey("", KeySpec{"a", PlanPro, time.Hour}, time.Now()); err == nil {
		t.Error("a key without a folder")
	}
	if _, err := MakeSigningKey(dir, "RS256", time.Now()); err == nil {
		t.Error("a signing key of an unknown kind")
	}
}

// Whatever comes as a key: it opens nothing unless it was signed here.
func FuzzAPIKey(f *testing.F) {
	dir := f.TempDir()
	now := time.Unix(1_900_000_000, 0)
	good := mustKey(f, dir, "a", PlanPro, time.Hour, now)
	keys, err := readSigningKeys(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	for _, key := range forgeries(f, keys[0], good, now) {
		f.Add(key)
	}
	ring := newKeyring([]string{testKey}, newSignedKeys(dir, func() time.Time { return now }, slog.New(slog.DiscardHandler)))
	f.Fuzz(func(t *testing.T, key string) {
		if who, ok := ring.identify(key); ok && key != good && key != testKey {
			t.Errorf("%q opens %+v", key, who)
		}
	})
}
