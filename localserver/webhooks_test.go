package localserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"hubbub/capture/audiofile"
	"hubbub/localserver/apikeys"
	"hubbub/protocol/testkit"
)

// called is a request of a webhook.
type called struct {
	header http.Header
	body   string
}

// receiver is a server that responds to webhooks with the given statuses, then 200.
func receiver(t *testing.T, statuses ...int) (url string, calls chan called) {
	t.Helper()
	calls = make(chan called, 16)
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if i := int(n.Add(1)) - 1; i < len(statuses) {
			w.WriteHeader(statuses[i])
		}
		calls <- called{r.Header, string(body)}
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

func (h *host) webhook(calls chan called) called {
	h.t.Helper()
	select {
	case c := <-calls:
		return c
	case <-time.After(jobTimeout):
		h.t.Fatal("the webhook was not called")
		return called{}
	}
}

// documentedWebhook compares a request of a webhook with openapi.json.
func documentedWebhook(t *testing.T, c called) {
	t.Helper()
	doc := newContract(t, openAPI)
	at := []string{"components", "callbacks", "JobEnded", "{$request.body#/webhook}", "post"}
	operation, _ := doc.at(at...)
	documented := map[string]bool{}
	for i, p := range operation.(map[string]any)["parameters"].([]any) {
		p := p.(map[string]any)
		name := p["name"].(string)
		documented[name] = true
		if value := c.header.Get(name); value != "" || p["required"] == true {
			doc.matches(name, value, append(at, "parameters", fmt.Sprint(i), "schema")...)
		}
	}
	for name := range c.header {
		if strings.HasPrefix(name, "X-") && !documented[name] {
			t.Errorf("%s is not documented", name)
		}
	}
	body := testkit.Must(jsonschema.UnmarshalJSON(strings.NewReader(c.body)))(t)
	doc.matches(c.body, body, append(at, "requestBody", "content", c.header.Get("Content-Type"), "schema")...)
}

// TestWebhook verifies the signature, the body and the retry of webhooks.
func TestWebhook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := serve(t, func(o *setup) { o.DataDir, o.WebhookTo = dir, []string{"127.0.0.1"} })
	root, err := apikeys.WebhookRoot(dir) // as `hubbub key webhook`
	testkit.NoError(t, err)
	secret := apikeys.WebhookSecret(root, apikeys.DefaultAccount)
	h.upload("silence", audiofile.WAV(make([]float32, 1600)))
	url, calls := receiver(t, 500)
	id := h.submit("diarize", fmt.Sprintf(`{"url":"media://silence","webhook":"%s/x"}`, url)).JobID
	want := fmt.Sprintf(`{"jobId":%q,"status":"succeeded","output":{"diarization":[]}}`, id)
	for try := range 2 {
		c := h.webhook(calls)
		documentedWebhook(t, c)
		timestamp := c.header.Get("X-Request-Timestamp")
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "v0:%s:%s", timestamp, c.body)
		if c.body != want || c.header.Get("X-Signature") != hex.EncodeToString(mac.Sum(nil)) || len(timestamp) != 10 {
			t.Errorf("try %d: %s %v", try, c.body, c.header)
		}
		num, reason := c.header.Get("x-retry-num"), c.header.Get("x-retry-reason")
		if try == 0 && num+reason != "" || try == 1 && num+reason != "1http_500" {
			t.Errorf("try %d: retry %q, reason %q", try, num, reason)
		}
	}
	for body, end := range map[string]string{
		`{"url":"media://silence","webhook":"%s","webhookStatusOnly":true}`: `"status":"succeeded"}`,
		`{"url":"media://gone","webhook":"%s"}`:                             `"status":"failed"}`,
	} {
		h.submit("diarize", fmt.Sprintf(body, url))
		c := h.webhook(calls)
		if documentedWebhook(t, c); !strings.HasSuffix(c.body, end) {
			t.Errorf("%s: %s", body, c.body)
		}
	}
	for _, address := range []string{"http://example.com/", "https://10.0.0.1/", "https://[::ffff:169.254.169.254]/", "http://localhost/"} {
		h.do("POST", "/v1/diarize", testKey, strings.NewReader(fmt.Sprintf(`{"url":"media://x","webhook":%q}`, address))).invalid(t, address, "webhook")
	}
}

// TestFetch fetches audio from a host that the operator named, and from no other.
func TestFetch(t *testing.T) {
	t.Parallel()
	audio := audiofile.WAV(make([]float32, 1600))
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/talk.wav":
			_, _ = w.Write(audio)
		case "/away":
			http.Redirect(w, r, "http://[::1]/talk.wav", http.StatusFound)
		case "/large":
			w.Header().Set("Content-Length", fmt.Sprint(int64(2<<30)))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(source.Close)
	h := serve(t, func(o *setup) { o.FetchFrom = []string{"127.0.0.1"} })
	for path, want := range map[string]string{
		"/talk.wav?token=x": `{"diarization":[]}`,
		"/away":             "the address is not allowed",
		"/large":            "The audio is larger than 1 GiB.",
		"/none":             "it returned 404",
	} {
		status, body := h.jobEnd(h.submit("diarize", fmt.Sprintf(`{"url":"%s%s"}`, source.URL, path)).JobID)
		if !strings.Contains(string(status.Output), want) || strings.Contains(body, "token") {
			t.Errorf("%s: %s, want %s", path, body, want)
		}
	}
	for _, address := range []string{"http://localhost/x", "http://example.com/x", "http://[::ffff:7f00:2]/x", "http://2130706433/x"} {
		h.do("POST", "/v1/diarize", testKey, strings.NewReader(fmt.Sprintf(`{"url":%q}`, address))).invalid(t, address, "url")
	}
}
