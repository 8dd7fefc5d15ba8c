package localserver

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/certificate"
	"hubbub/protocol/testkit"
)

// pairIn writes a fresh certificate and its key into two files.
func pairIn(t *testing.T, cert, key string) *x509.Certificate {
	t.Helper()
	c := testkit.Must(certificate.Create("", time.Now(), "127.0.0.1"))(t)
	pair := testkit.Must(c.Config().GetCertificate(nil))(t)
	secret := testkit.Must(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		testkit.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	return pair.Leaf
}

// presented is the certificate that a new connection gets.
func presented(t *testing.T, h *host, config *tls.Config) *x509.Certificate {
	t.Helper()
	conn := testkit.Must(tls.Dial("tcp", h.Addr().String(), config))(t)
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0]
}

func TestCertificateFromFilesIsReloaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := pairIn(t, cert, key)
	clock := newClock()
	h := serve(t, clock.use, func(o *setup) { o.TLS = certificate.Config{Mode: certificate.Files, Cert: cert, Key: key} })
	any := &tls.Config{InsecureSkipVerify: true}
	if !presented(t, h, any).Equal(first) {
		t.Error("another certificate")
	}
	// While the files are being replaced, the old certificate stays in use.
	later := time.Now().Add(time.Hour)
	testkit.NoError(t, os.WriteFile(cert, []byte("not yet"), 0o600))
	testkit.NoError(t, os.Chtimes(cert, later, later))
	clock.move(time.Minute)
	if !presented(t, h, any).Equal(first) {
		t.Error("the old certificate is no longer used")
	}
	second := pairIn(t, cert, key)
	clock.move(time.Minute)
	if got := presented(t, h, any); !got.Equal(second) {
		t.Error("the new one is not used")
	}
	pool := x509.NewCertPool()
	pool.AddCert(second)
	presented(t, h, &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS12})
	if conn, err := tls.Dial("tcp", h.Addr().String(), &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is accepted")
	}
	if h.CAPEM() != nil {
		t.Error("the operator's certificate is returned as a CA")
	}
}

// What clients need to trust a self-signed certificate is in the data folder,
// readable by everybody, and the log says where, with the fingerprint.
func TestCAFile(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), &logBuffer{}
	h := serve(t, log.use, func(o *setup) { o.DataDir = dir })
	file := filepath.Join(dir, "ca.pem")
	raw, err := os.ReadFile(file)
	if err != nil || string(raw) != string(h.CAPEM()) {
		t.Fatalf("%q %v", raw, err)
	}
	testkit.HasMode(t, file, 0o644)
	if strings.Contains(string(raw), "PRIVATE") {
		t.Error("it contains the private key")
	}
	block, _ := pem.Decode(h.CAPEM())
	fingerprint := strings.ReplaceAll(fmt.Sprintf("% X", sha256.Sum256(block.Bytes)), " ", ":")
	for _, want := range []string{file, fingerprint} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not contain %s", want)
		}
	}
}
