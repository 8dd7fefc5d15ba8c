package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"hubbub/protocol"
)

// Certificates that are out of date, of another name, or soon to end, of an
// authority that is trusted.
func TestCheckCertificates(t *testing.T) {
	t.Parallel()
	serve := func(change func(*x509.Certificate)) (string, []byte) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Hotel Authority"},
			NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
		}
		change(c)
		der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		var s *httptest.Server
		s = httptest.NewUnstartedServer(badService{}.handler(func() string { return s.URL }))
		s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	for _, tt := range []struct {
		name        string
		change      func(*x509.Certificate)
		cause, next string
	}{
		{"expired", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }, "expired on", "renew"},
		{"clock", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }, "not valid before", "clock"},
		{"interception", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"login.hotel.example"} },
			"made out to login.hotel.example, by Hotel Authority", "opens TLS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address, ca := serve(tt.change)
			fails(t, runCheck(t, address, checkKey, patience, 2, func(o *protocol.ClientOptions) { o.CACert = ca }), "tls", tt.cause, tt.next)
		})
	}
	address, ca := serve(func(*x509.Certificate) {})
	r := runCheck(t, address, checkKey, patience, 2, func(o *protocol.ClientOptions) { o.CACert = ca })
	if s := r.Stages[2]; !r.OK || s.State != stateNotice || !strings.Contains(s.Cause, "ends in 1 days") || s.Details["days_left"] != 1 {
		t.Errorf("%+v", s)
	}
}

// checkWith runs the program's check with variables in its environment, for
// proxies: Go reads those once, and never uses them for this machine.
func checkWith(t *testing.T, env []string, address string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "check", "--server", address, "--api-key", checkKey, "--seconds", "1")
	cmd.Env = append(os.Environ(), append(env, asHubbub+"=1", "HUBBUB_SERVER=", "HUBBUB_API_KEY=", "NO_PROXY=", "no_proxy=")...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || strings.Contains(string(out), checkKey) {
		t.Errorf("check with %v: %v\n%s", env, err, out)
	}
	return string(out)
}

// A proxy that knows plain HTTP alone lets the operations through and no
// WebSocket; one that is not there is told from a service that is not there.
func TestCheckThroughAProxy(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(badService{}.handler(func() string { return "http://service.invalid" }))
	t.Cleanup(service.Close)
	at, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at); r.Out.Header.Del("Upgrade") },
		ModifyResponse: func(r *http.Response) error { r.Header.Set("Via", "1.1 old-proxy"); return nil }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)

	out := checkWith(t, []string{"HTTP_PROXY=" + proxy.URL}, "http://service.invalid")
	for _, want := range []string{"through the proxy " + strings.TrimPrefix(proxy.URL, "http://"), "ok       stream created",
		"failed   WebSocket opened", "cause: through the proxy", "must pass on the headers Upgrade"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for env, address := range map[string]string{"HTTP_PROXY": "http://service.invalid", "HTTPS_PROXY": "https://service.invalid"} {
		out := checkWith(t, []string{env + "=http://u:hidden@127.0.0.1:1"}, address)
		if !strings.Contains(out, "failed   TCP") || !strings.Contains(out, "cause: the proxy cannot be reached: 127.0.0.1:1 refuses") ||
			!strings.Contains(out, "NO_PROXY") || strings.Contains(out, "hidden") {
			t.Errorf("%s", out)
		}
	}
	out = checkWith(t, []string{"HTTPS_PROXY=" + proxy.URL}, "https://service.invalid")
	if !strings.Contains(out, "failed   TLS") || !strings.Contains(out, "gives no way to service.invalid:443: it answered 403") {
		t.Errorf("%s", out)
	}
}

// On a terminal the table stays within it, words whole, and says with colours
// what the words say.
func TestCheckTable(t *testing.T) {
	r := checkReport{Server: "https://diarization.example", Stages: []checkStage{
		{Title: "name look-up", State: stateOK, Millis: 1, Seen: "diarization.example is 192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4"},
		{Title: "TLS", State: stateFailed, Millis: 20, Seen: "TLS 1.3, certificate for localhost by nobody (self-signed), 396 days left",
			Cause: "the certificate of diarization.example:443 is signed by an authority that this machine does not know",
			Next:  "Your own server: trust its certificate with --ca FILE. In the network of a company or a hotel, that name may be a proxy."},
		{Title: "key accepted", State: stateSkipped, Seen: "not tried: TLS failed"},
	}}
	var plain bytes.Buffer
	if err := r.table(&plain, sheet{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain.String(), "\x1b") || strings.Count(plain.String(), "\n") != 7 {
		t.Errorf("%s", plain.String())
	}
	for _, width := range []int{60, 80, 100, 10} {
		var b bytes.Buffer
		if err := r.table(&b, sheet{width: width, colours: true}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if w := ansi.StringWidth(strings.TrimSuffix(line, "\n")); width >= 60 && w >= width {
				t.Errorf("%d cells in a terminal of %d: %q", w, width, line)
			}
		}
		words := strings.Fields(ansi.Strip(b.String()))
		if want := strings.Fields(plain.String()); strings.Join(words, " ") != strings.Join(want, " ") {
			t.Errorf("at %d cells the words are %q", width, words)
		}
		if !strings.Contains(b.String(), "\x1b[1;31mfailed") || !strings.Contains(b.String(), "\x1b[32mok") {
			t.Errorf("no colours: %q", b.String())
		}
	}
}

// A key that is a word of ours leaves what to do as it is; a real one is in no
// part of a report.
func TestCheckHidesKeys(t *testing.T) {
	bad := badService{test: answer(401, `{"requestId":"r","message":"wrong"}`)}
	fails(t, runCheckOf(t, serveBad(t, bad), "wrong"), "key", "[API key]", "it is missing, wrong or expired")
	r := runCheckOf(t, serveBad(t, bad), checkKey)
	r.Stages[0].Next = "" // what is looked for is in the others
	fails(t, r, "key", "401", "API key")
}

// runCheckOf is runCheck without its search for the key.
func runCheckOf(t *testing.T, address, key string) checkReport {
	t.Helper()
	client, err := protocol.NewClient(protocol.ClientOptions{BaseURL: address, APIKey: key, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := newChecker(&connection{Client: client, name: address}, patience, key, make([]float32, 2*protocol.ChunkSamples))
	c.run(t.Context())
	return c.report(time.Now())
}
