package localserver

import (
	"strings"
	"testing"
	"time"

	"hubbub/localserver/apikeys"
	"hubbub/protocol/testkit"
)

func mustKey(t testing.TB, dir, account, plan string, now time.Time) string {
	t.Helper()
	key := testkit.Must(apikeys.Create(dir, apikeys.Spec{Account: account, Plan: plan, Expires: time.Hour}, now))(t)
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

// The turns of a stream are those of its account; contract rules test its status and media. A
// stream of another account is as unknown as one that does not exist.
func TestAccountsAreApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := serve(t, func(o *setup) { o.DataDir = dir })
	other := mustKey(t, dir, "other", apikeys.PlanPro, time.Now())
	s := h.open()
	s.end()
	s.rest()
	h.becomes(s.id, "done")
	h.get("media://live/" + s.id + "/turns.rttm")
	h.do("POST", "/v1/media/output", other, strings.NewReader(`{"url":"media://live/`+s.id+`/turns.rttm"}`)).apiError(t, 404)
	theirs := h.do("GET", "/v1/live/"+s.id, other, nil).apiError(t, 404)
	if e := h.do("GET", "/v1/live/"+unknownID, testKey, nil).apiError(t, 404); e.Message != theirs.Message {
		t.Errorf("%q differs from %q for a stream of another account", e.Message, theirs.Message)
	}
}
