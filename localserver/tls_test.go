package localserver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/protocol/hint"
)

func verified(t *testing.T, c *certificate, name string, at time.Time) error {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(c.caPEM) {
		t.Fatalf("%s is not PEM", c.caPEM)
	}
	_, err := c.pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: at})
	return err
}

func TestCertificateCoversItsHosts(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c, err := selfSigned("", now, "box.example.org", "10.1.2.3", "0.0.0.0", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "box.example.org", "10.1.2.3"} {
		if err := verified(t, c, name, now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"example.org", "10.1.2.4", "0.0.0.0"} {
		if verified(t, c, name, now) == nil {
			t.Errorf("%s is covered", name)
		}
	}
	if verified(t, c, "localhost", now.Add(certificateLife)) == nil {
		t.Error("it does not expire")
	}
}

func TestCertificateIsStored(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	get := func(at time.Time, hosts ...string) []byte {
		t.Helper()
		c, err := selfSigned(dir, at, hosts...)
		if err != nil {
			t.Fatal(err)
		}
		if err := verified(t, c, "localhost", at); err != nil {
			t.Error(err)
		}
		return c.caPEM
	}
	first := get(now, "127.0.0.1")
	if again := get(now.Add(time.Hour), "127.0.0.1"); !bytes.Equal(first, again) {
		t.Error("a valid certificate was replaced")
	}
	other := get(now, "box.example.org")
	if bytes.Equal(first, other) {
		t.Error("the old certificate is used for a new host")
	}
	if late := get(now.Add(certificateLife-24*time.Hour), "box.example.org"); bytes.Equal(late, other) {
		t.Error("a certificate is used a day before it expires")
	}
	file := filepath.Join(dir, certificateFile)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := os.WriteFile(file, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	get(now) // a damaged file is replaced
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	h := serve(t)
	config := h.dial.TLSClientConfig.Clone()
	config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if conn, err := tls.Dial("tcp", h.Addr().String(), config); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is accepted")
	}
}

// pairIn writes a fresh certificate and its key into two files.
func pairIn(t *testing.T, cert, key string) *x509.Certificate {
	t.Helper()
	names, addresses := certificateNames([]string{"127.0.0.1"})
	raw, err := createCertificate(names, addresses, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	first, rest := pem.Decode(raw)
	for file, content := range map[string][]byte{cert: pem.EncodeToMemory(first), key: rest} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := x509.ParseCertificate(first.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// presented is the certificate that a new connection gets.
func presented(t *testing.T, h *host, config *tls.Config) *x509.Certificate {
	t.Helper()
	conn, err := tls.Dial("tcp", h.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0]
}

func TestCertificateFromFilesIsReloaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := pairIn(t, cert, key)
	clock := newClock()
	h := serve(t, clock.use, func(o *setup) { o.TLS = TLSConfig{Mode: TLSFiles, Cert: cert, Key: key} })
	any := &tls.Config{InsecureSkipVerify: true}
	if !presented(t, h, any).Equal(first) {
		t.Error("another certificate")
	}
	// While the files are being replaced, the old certificate stays in use.
	later := time.Now().Add(time.Hour)
	if err := os.WriteFile(cert, []byte("not yet"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(cert, later, later); err != nil {
		t.Fatal(err)
	}
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

func TestInvalidCertificateFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, other := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	pairIn(t, cert, other)
	pairIn(t, cert, key)
	for name, flag := range map[string]string{
		"none": filepath.Join(dir, "x") + "," + key, "no key": cert + "," + cert, "another key": cert + "," + other,
	} {
		config, err := ParseTLS(flag)
		if err != nil || config.String() != flag {
			t.Fatalf("%s: %v %s", name, err, config)
		}
		s := &Server{options: Options{TLS: config}, now: time.Now}
		if _, err = s.certificate(); err == nil || strings.Contains(err.Error(), "\n") || hint.Of(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
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
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if strings.Contains(string(raw), "PRIVATE") {
		t.Error("it contains the private key")
	}
	for _, want := range []string{file, fingerprint(h.tls.pair.Leaf)} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not contain %s", want)
		}
	}
}
