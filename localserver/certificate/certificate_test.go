package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

func verified(t *testing.T, c *Certificate, name string, at time.Time) error {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(c.CAPEM()) {
		t.Fatalf("%s is not PEM", c.CAPEM())
	}
	_, err := c.pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: at})
	return err
}

func TestCertificateCoversItsHosts(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := testkit.Must(Create("", now, "box.example.org", "10.1.2.3", "0.0.0.0", ""))(t)
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
	if verified(t, c, "localhost", now.Add(validity)) == nil {
		t.Error("it does not expire")
	}
}

func TestCertificateIsStored(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	get := func(at time.Time, hosts ...string) []byte {
		t.Helper()
		c := testkit.Must(Create(dir, at, hosts...))(t)
		testkit.NoError(t, verified(t, c, "localhost", at))
		return c.CAPEM()
	}
	first := get(now, "127.0.0.1")
	if again := get(now.Add(time.Hour), "127.0.0.1"); !bytes.Equal(first, again) {
		t.Error("a valid certificate was replaced")
	}
	other := get(now, "box.example.org")
	if bytes.Equal(first, other) {
		t.Error("the old certificate is used for a new host")
	}
	if late := get(now.Add(validity-24*time.Hour), "box.example.org"); bytes.Equal(late, other) {
		t.Error("a certificate is used a day before it expires")
	}
	file := filepath.Join(dir, File)
	testkit.HasMode(t, file, 0o600)
	testkit.NoError(t, os.WriteFile(file, []byte("half a"), 0o600))
	get(now) // a damaged file is replaced
	if names := testkit.Files(t, dir, "*"); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

// pairIn writes a fresh certificate and its key into two files.
func pairIn(t *testing.T, cert, key string) *x509.Certificate {
	t.Helper()
	names, addresses := Names([]string{"127.0.0.1"})
	raw := testkit.Must(create(names, addresses, time.Now()))(t)
	first, rest := pem.Decode(raw)
	for file, content := range map[string][]byte{cert: pem.EncodeToMemory(first), key: rest} {
		testkit.NoError(t, os.WriteFile(file, content, 0o600))
	}
	c := testkit.Must(x509.ParseCertificate(first.Bytes))(t)
	return c
}

// While files are being replaced, the old certificate stays in use.
func TestCertificateFilesAreReplaced(t *testing.T) {
	t.Parallel()
	dir, at := t.TempDir(), time.Now()
	cert, key := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	old := pairIn(t, cert, key)
	c := testkit.Must(Load(Config{Mode: Files, Cert: cert, Key: key}, "", nil, func() time.Time { return at }, slog.New(slog.DiscardHandler)))(t)
	uses := func(want *x509.Certificate) {
		t.Helper()
		at = at.Add(time.Minute)
		if pair := testkit.Must(c.Config().GetCertificate(nil))(t); !pair.Leaf.Equal(want) {
			t.Error("another certificate is used")
		}
	}
	uses(old)
	testkit.NoError(t, os.WriteFile(cert, []byte("not yet"), 0o600))
	uses(old)
	uses(pairIn(t, cert, key))
	if c.CAPEM() != nil {
		t.Error("the operator's certificate is returned as a CA")
	}
	testkit.Equal(t, c.Config().MinVersion, tls.VersionTLS12, "the least version of TLS")
}

// A server may run for longer than its self-signed certificate is valid.
func TestSelfSignedIsRenewed(t *testing.T) {
	t.Parallel()
	dir, at := t.TempDir(), time.Now()
	c := testkit.Must(Load(Config{Mode: SelfSigned}, dir, nil, func() time.Time { return at }, slog.New(slog.DiscardHandler)))(t)
	first := c.CAPEM()
	at = at.Add(validity - 2*time.Hour)
	if c.current(); !bytes.Equal(first, c.CAPEM()) {
		t.Error("a valid certificate was replaced, which clients do not trust")
	}
	at = at.Add(2 * time.Hour)
	if c.current(); verified(t, c, "localhost", at) != nil {
		t.Error("an expired certificate stays in use")
	}
	if stored, err := os.ReadFile(filepath.Join(dir, caFile)); err != nil || !bytes.Equal(stored, c.CAPEM()) {
		t.Errorf("what clients have to trust is not stored (%v)", err)
	}
	c = testkit.Must(Load(Config{Mode: SelfSigned}, "", nil, func() time.Time { return at }, slog.New(slog.DiscardHandler)))(t)
	first = c.CAPEM()
	at = at.Add(validity)
	if c.current(); !bytes.Equal(first, c.CAPEM()) {
		t.Error("a certificate that is stored nowhere was replaced: its clients cannot trust another one")
	}
}

// A clock that is behind when the server starts costs no certificate that clients trust.
func TestClockBehindTheCertificate(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	var log bytes.Buffer
	load := func(at time.Time) []byte {
		t.Helper()
		log.Reset()
		c := testkit.Must(Load(Config{Mode: SelfSigned}, dir, nil, func() time.Time { return at }, slog.New(slog.NewTextHandler(&log, nil))))(t)
		return c.CAPEM()
	}
	first := load(now)
	for _, behind := range []time.Duration{0, 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
		if !bytes.Equal(first, load(now.Add(-behind))) {
			t.Errorf("%v behind: the certificate was replaced", behind)
		}
		testkit.Equal(t, strings.Contains(log.String(), "not valid yet"), behind > 0, behind, "behind", log.String())
	}
}

// A certificate that has expired is used, since only the operator can replace it, but the log
// says so.
func TestExpiredCertificateFiles(t *testing.T) {
	t.Parallel()
	cert, key := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	expires := pairIn(t, cert, key).NotAfter
	for _, expired := range []bool{false, true} {
		now := expires.Add(-time.Minute)
		if expired {
			now = expires.Add(time.Minute)
		}
		var log bytes.Buffer
		c, err := Load(Config{Mode: Files, Cert: cert, Key: key}, "", nil, func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil || c.current() == nil || strings.Contains(log.String(), "has expired") != expired {
			t.Errorf("expired %v: %v, log: %s", expired, err, log.String())
		}
	}
}

// Files that are replaced within a tick of the file system's clock are noticed, also if they have
// the same sizes.
func TestCertificateFilesOfTheSameTime(t *testing.T) {
	t.Parallel()
	cert, key := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	at := time.Now()
	pair := func() (*x509.Certificate, int64) {
		leaf := pairIn(t, cert, key)
		testkit.NoError(t, errors.Join(os.Chtimes(cert, at, at), os.Chtimes(key, at, at)))
		return leaf, testkit.Must(os.Stat(cert))(t).Size()
	}
	_, size := pair()
	c := testkit.Must(Load(Config{Mode: Files, Cert: cert, Key: key}, "", nil, func() time.Time { return at }, slog.New(slog.DiscardHandler)))(t)
	leaf, again := pair()
	for again != size {
		leaf, again = pair()
	}
	at = at.Add(time.Minute)
	if !c.current().Leaf.Equal(leaf) {
		t.Error("the old certificate stays in use")
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
		config, err := Parse(flag)
		if err != nil || config.String() != flag {
			t.Fatalf("%s: %v %s", name, err, config)
		}
		if _, err = Load(config, "", nil, time.Now, slog.New(slog.DiscardHandler)); err == nil || strings.Contains(err.Error(), "\n") || hint.Of(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
