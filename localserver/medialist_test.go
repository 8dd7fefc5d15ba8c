package localserver

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// listed returns the response of GET /v1/media.
func (h *host) listed(query string) protocol.MediaList {
	h.t.Helper()
	return decoded[protocol.MediaList](h.t, h.do("GET", "/v1/media"+query, testKey, nil), 200)
}

func locations(l protocol.MediaList) (all []string) {
	for _, o := range l.Media {
		all = append(all, o.URL)
	}
	return all
}

func deletePath(location string) string { return "/v1/media?url=" + url.QueryEscape(location) }

func TestMediaIsListedAndDeleted(t *testing.T) {
	t.Parallel()
	clock := newClock()
	dir := t.TempDir()
	h := serve(t, clock.use, func(o *setup) { o.DataDir = dir })
	foreign := mustKey(t, dir, "b", "pro", clock.now())
	if l := h.listed(""); len(l.Media) != 0 || l.Used != 0 || l.Limit != DefaultAccountStorage || !strings.Contains(string(h.do("GET", "/v1/media", testKey, nil).body), `"media":[]`) {
		t.Errorf("nothing is stored: %+v", l)
	}
	names := []string{"media://../x", "media://a", "media://a//b", "media://a/b"}
	for i, name := range names {
		h.put(name, strings.Repeat("x", i))
	}
	l := h.listed("")
	if got := locations(l); !slices.Equal(got, names) || l.Used != 6 || l.Media[3].Size != 3 {
		t.Errorf("%+v", l)
	}
	at, err := time.Parse(time.RFC3339, l.Media[0].ExpiresAt)
	if want := clock.now().Add(store.MediaTTL); err != nil || at.Sub(want).Abs() > time.Second {
		t.Errorf("expires at %v, %v; want %v", at, err, want)
	}
	testkit.EqualSlices(t, locations(h.listed("?after="+url.QueryEscape(names[1]))), names[2:], "after the second")
	h.do("DELETE", deletePath(names[2]), foreign, nil).apiError(t, 404)
	out := h.ask("output", names[2])
	if res := h.do("DELETE", deletePath(names[2]), testKey, nil); res.StatusCode != 204 || len(res.body) != 0 {
		t.Errorf("delete: %d %s", res.StatusCode, res.body)
	}
	h.do("DELETE", deletePath(names[2]), testKey, nil).apiError(t, 404)
	h.at("GET", out, nil).apiError(t, 404)
	testkit.EqualSlices(t, locations(h.listed("")), slices.Delete(slices.Clone(names), 2, 3), "after the deletion")
	h.do("GET", "/v1/media?after=x", testKey, nil).invalid(t, "after=x", "after")
	h.do("GET", "/v1/media?after=media://%zz", testKey, nil).invalid(t, "malformed query", "query")
	for _, query := range []string{"", "?url=", "?url=media://", "?url=media://a&url=media://b"} {
		h.do("DELETE", "/v1/media"+query, testKey, nil).invalid(t, query, "url")
	}
	clock.move(store.MediaTTL)
	if l := h.listed(""); len(l.Media) != 0 || l.Used != 0 {
		t.Errorf("expired media are listed: %+v", l)
	}
}

// A long list comes in pages: Next is where the next one begins.
func TestPagesOfMedia(t *testing.T) {
	objects := make([]store.MediaInfo, maxListed+1)
	for i := range objects {
		objects[i].Name = fmt.Sprintf("%04d", i)
	}
	first := mediaPage(objects, "")
	second := mediaPage(objects, strings.TrimPrefix(first.Next, protocol.MediaScheme))
	got := append(locations(first), locations(second)...)
	if len(first.Media) != maxListed || len(got) != len(objects) || got[maxListed] != "media://1000" || second.Next != "" {
		t.Errorf("%d and %d objects, then %q", len(first.Media), len(second.Media), second.Next)
	}
	if whole := mediaPage(objects[1:], ""); len(whole.Media) != maxListed || whole.Next != "" {
		t.Errorf("a full page has %d objects, and then %q", len(whole.Media), whole.Next)
	}
}

// Without a data folder the storage of an account is what the store has.
func TestAccountStorageInMemory(t *testing.T) {
	t.Parallel()
	testkit.Equal(t, serve(t).listed("").Limit, store.MediaMemory, "bytes")
}

// An upload beyond the quota of its account is refused with what to do, and there is room
// again after a deletion.
func TestAccountStorageOfUploads(t *testing.T) {
	t.Parallel()
	const size, fit = 64 << 10, 10
	h := serve(t, func(o *setup) { o.AccountStorage = fit * size })
	body := strings.Repeat("x", size)
	for i := range fit {
		h.put(fmt.Sprint("media://", i), body)
	}
	for _, content := range []io.Reader{strings.NewReader("x"), io.MultiReader(strings.NewReader("x"))} { // of known and unknown length
		e := h.at("PUT", h.ask("input", "media://last"), content).apiError(t, 413)
		if !strings.Contains(e.Message, "0.6 of 0.6 MiB") || !strings.Contains(e.Message, "DELETE /v1/media") {
			t.Errorf("%q does not say what to do", e.Message)
		}
	}
	if l := h.listed(""); l.Used != l.Limit || len(l.Media) != fit {
		t.Errorf("after the refused uploads: %+v", l)
	}
	h.do("DELETE", deletePath("media://0"), testKey, nil).hasStatus(t, "delete", 204)
	h.put("media://last", body)
}
