package localserver

import (
	"strings"
	"testing"
	"time"

	"hubbub/localserver/apikeys"
	"hubbub/protocol/testkit"
)

func mustKey(t testing.TB, dir, account, plan string, life time.Duration, now time.Time) string {
	t.Helper()
	key, err := apikeys.Create(dir, apikeys.Spec{Account: account, Plan: plan, Expires: life}, now)
	testkit.NoError(t, err)
	return key
}

// accepts returns the status of GET /v1/test with a key: 200 or 401.
func (h *host) accepts(key string) int {
	h.t.Helper()
	res := h.do("GET", "/v1/test", key, nil)
	if res.StatusCode != 200 {
		res.apiError(h.t, 401)
	}
	return res.StatusCode
}

// signedOnly makes a server of a data folder, without static keys.
func signedOnly(dir string) func(*setup) {
	return func(o *setup) { o.DataDir, o.APIKeys = dir, nil }
}

// Accounts do not see each other's streams and media.
func TestAccountsAreApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := serve(t, func(o *setup) { o.DataDir = dir })
	other := mustKey(t, dir, "other", apikeys.PlanPro, time.Hour, time.Now())
	l := h.create()
	theirs := h.do("GET", "/v1/live/"+l.ID, other, nil).apiError(t, 404)
	for _, unknown := range []string{unknownID, "x", "*", ">", "a%2fb", "a%20b", strings.Repeat("a", 1900)} {
		if e := h.do("GET", "/v1/live/"+unknown, testKey, nil).apiError(t, 404); e.Message != theirs.Message {
			t.Errorf("%q: %q differs from %q for a stream of another account", unknown, e.Message, theirs.Message)
		}
	}
	h.put("media://x", "mine")
	h.do("POST", "/v1/media/output", other, strings.NewReader(`{"url":"media://x"}`)).apiError(t, 404)
	s := h.open()
	s.end()
	s.rest()
	h.becomes(s.id, "done")
	h.get("media://live/" + s.id + "/turns.rttm")
	h.do("POST", "/v1/media/output", other, strings.NewReader(`{"url":"media://live/`+s.id+`/turns.rttm"}`)).apiError(t, 404)
}

// Keys that are not valid are all refused in the same words, and a server
// without a data folder accepts no signed key at all.
func TestInvalidKeysAreRefusedAlike(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := serve(t, signedOnly(dir))
	now := time.Now()
	good := mustKey(t, dir, "a", apikeys.PlanPro, time.Hour, now)
	if h.accepts(good) != 200 {
		t.Fatal("a valid key is not accepted")
	}
	if h.accepts(mustKey(t, dir, "b", apikeys.PlanPro, time.Hour, now)) != 200 {
		t.Error("a key created while the server runs is not accepted")
	}
	elsewhere := mustKey(t, t.TempDir(), "a", apikeys.PlanPro, time.Hour, now)
	parts := strings.Split(good, ".")
	message := h.do("GET", "/v1/test", "", nil).apiError(t, 401).Message
	for name, key := range map[string]string{
		"signed with another key": elsewhere,
		"expired":                 mustKey(t, dir, "a", apikeys.PlanPro, time.Hour, now.Add(-2*time.Hour)),
		"no signature":            parts[0] + "." + parts[1] + ".",
		"not a token":             "..",
	} {
		if e := h.do("GET", "/v1/test", key, nil).apiError(t, 401); e.Message != message {
			t.Errorf("%s: %q differs from %q", name, e.Message, message)
		}
	}
	if serve(t).accepts(good) != 401 {
		t.Error("a server without a data folder accepts a signed key")
	}
}
