package localserver

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pairIn writes a fresh certificate and its key into two files.
func pairIn(t *testing.T, cert, key string) *x509.Certificate {
	t.Helper()
	names, addresses := certificateNames([]string{"127.0.0.1"})
	raw, err := makeCertificate(names, addresses, time.Now())
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

// shown is the certificate that a new connection sees.
func shown(t *testing.T, h *host, config *tls.Config) *x509.Certificate {
	t.Helper()
	conn, err := tls.Dial("tcp", h.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0]
}

func TestCertificateFromFilesIsReloaded(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := pairIn(t, cert, key)
	clock := newClock()
	h := serve(t, clock.use, func(o *Options) { o.TLS = TLSConfig{Mode: TLSFiles, Cert: cert, Key: key} })
	any := &tls.Config{InsecureSkipVerify: true}
	if !shown(t, h, any).Equal(first) {
		t.Error("another certificate")
	}
	// Half replaced: what there was stays in use.
	later := time.Now().Add(time.Hour)
	if err := os.WriteFile(cert, []byte("not yet"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(cert, later, later); err != nil {
		t.Fatal(err)
	}
	clock.move(time.Minute)
	if !shown(t, h, any).Equal(first) {
		t.Error("the old one is gone before there is a new one")
	}
	second := pairIn(t, cert, key)
	clock.move(time.Minute)
	if got := shown(t, h, any); !got.Equal(second) {
		t.Error("the new one is not used")
	}
	pool := x509.NewCertPool()
	pool.AddCert(second)
	shown(t, h, &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS12})
	if conn, err := tls.Dial("tcp", h.Addr().String(), &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is spoken")
	}
	if h.CAPEM() != nil {
		t.Error("a certificate of the operator's is not ours to hand out")
	}
}

func TestCertificateFilesThatDoNot(t *testing.T) {
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
		if _, err = s.certificate(); err == nil || strings.Contains(err.Error(), "\n") || err.(*hinted).Hint() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What clients need to trust a self-signed certificate lies in the data
// folder, for everybody to read, and the log says where and which it is.
func TestAuthorityForClients(t *testing.T) {
	dir, log := t.TempDir(), &logbook{}
	h := serve(t, log.use, func(o *Options) { o.DataDir = dir })
	file := filepath.Join(dir, "ca.pem")
	raw, err := os.ReadFile(file)
	if err != nil || string(raw) != string(h.CAPEM()) {
		t.Fatalf("%q %v", raw, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if strings.Contains(string(raw), "PRIVATE") {
		t.Error("the key is in it")
	}
	for _, want := range []string{file, fingerprint(h.tls.pair.Leaf)} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s", want)
		}
	}
}
