package localserver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func verified(t *testing.T, c *certificate, name string, at time.Time) error {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(c.caPEM) {
		t.Fatalf("%s is no PEM", c.caPEM)
	}
	_, err := c.pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: at})
	return err
}

func TestCertificateCoversItsHosts(t *testing.T) {
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
		t.Error("it never ends")
	}
}

func TestCertificateIsKept(t *testing.T) {
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
		t.Error("a new one for nothing")
	}
	other := get(now, "box.example.org")
	if bytes.Equal(first, other) {
		t.Error("the old one for a new host")
	}
	if late := get(now.Add(certificateLife-24*time.Hour), "box.example.org"); bytes.Equal(late, other) {
		t.Error("the old one a day before its end")
	}
	file := filepath.Join(dir, keptCertificate)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := os.WriteFile(file, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	get(now) // a damaged file is replaced
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	h := serve(t)
	config := h.dial.TLSClientConfig.Clone()
	config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if conn, err := tls.Dial("tcp", h.Addr().String(), config); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is spoken")
	}
}
