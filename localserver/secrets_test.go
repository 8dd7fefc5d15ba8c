package localserver

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/apikeys"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// A complete stream, with every kind of secret and every kind of refusal: no
// secret is in the log, at any level, and each refusal has a line with its request id. Requests
// have a line with their account.
func TestLogOfAStreamHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	var log logBuffer
	dir := t.TempDir()
	h := serve(t, log.use, func(o *setup) { o.DataDir, o.KeepAudio = dir, true })
	key := mustKey(t, dir, "team", apikeys.PlanPro, time.Now())
	secrets := []string{testKey, key}
	parts := strings.Split(key, ".")
	secrets = append(secrets, parts[1], parts[2])
	address := func(op, location string) string {
		a := h.ask(op, location)
		secrets = append(secrets, a[strings.LastIndex(a, "/")+1:])
		return a
	}
	h.do("GET", "/v1/test", key, nil)
	h.do("GET", "/v1/test", key+"x", nil)
	h.do("GET", "/"+key+"?token="+key, "", nil)
	l := h.create()
	u, _ := url.Parse(l.URL)
	secrets = append(secrets, u.Query().Get("token"))
	s := h.openNow(l)
	s.chunks(2)
	s.text("not a valid message")
	s.end()
	s.rest()
	_ = s.Close()
	h.becomes(l.ID, protocol.StatusDone)
	h.watch(l.ID, "").rest()
	refused := h.refusal(l.URL, nil).apiError(t, 401)
	in := address("input", "media://x")
	h.at("PUT", in, strings.NewReader("body"))
	h.at("GET", in, nil).apiError(t, 403)
	out := address("output", "media://x")
	h.at("GET", out, nil)
	h.at("GET", out+"?"+out, nil)
	h.at("PUT", out, strings.NewReader("x")).apiError(t, 403)
	h.at("GET", address("output", "media://live/"+l.ID+"/audio.wav"), nil)
	broken, _ := url.Parse(address("input", "media://y"))
	h.abortedUpload(broken)
	testkit.NoError(t, h.store.Close())
	h.at("GET", out, nil).apiError(t, 503)
	h.at("PUT", in, strings.NewReader("x")).apiError(t, 503)
	h.do("POST", "/v1/live", key, nil).apiError(t, 503)
	files := testkit.Files(t, dir, "keys/*.pem")
	if len(files) == 0 {
		t.Fatal(files)
	}
	for _, file := range files {
		raw := testkit.Must(os.ReadFile(file))(t)
		block, _ := pem.Decode(raw)
		private := testkit.Must(x509.ParsePKCS8PrivateKey(block.Bytes))(t)
		secrets = append(secrets, fmt.Sprintf("%x", private), fmt.Sprint(private))
	}
	testkit.Eventually(t, "the last line", func() bool { return strings.Count(log.String(), "status=503") >= 3 })
	text := log.String()
	for _, x := range secrets {
		if x == "" || strings.Contains(text, x) {
			t.Errorf("the log contains %q", x)
		}
	}
	if strings.Contains(text, "token=") || bytes.Contains([]byte(text), []byte("Bearer ")) {
		t.Error("the log contains a query or a credential")
	}
	for _, has := range []string{"stream=" + l.ID, "media stored", "request=" + refused.RequestID, `account=team method=GET route="GET /v1/test"`,
		`account=default method=PUT`, `account=default method=GET route="GET /v1/stream/{id}"`} {
		if !strings.Contains(text, has) {
			t.Errorf("the log does not contain %q", has)
		}
	}
}
