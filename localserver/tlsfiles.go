package localserver

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// tlsLook is how often the files of a certificate are looked at, at most.
const tlsLook = time.Second

// pairFiles is a certificate and its key in files that somebody else renews.
// A handshake looks whether they have changed; there is nothing to restart and
// nothing that watches.
type pairFiles struct {
	cert, key string
	log       *slog.Logger
	now       func() time.Time

	mu     sync.Mutex
	pair   *tls.Certificate
	looked time.Time
	seen   [2]fileMark
}

// fileMark tells one version of a file from another.
type fileMark struct {
	size int64
	at   time.Time
}

// loadPair reads both files. Errors carry a hint.
func loadPair(cert, key string, log *slog.Logger, now func() time.Time) (*pairFiles, error) {
	p := &pairFiles{cert: cert, key: key, log: log, now: now}
	if err := p.load(); err != nil {
		hint := "Give the certificate (with its chain) and its private key, both as PEM: --tls CERT,KEY."
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			hint = "Check the paths of --tls CERT,KEY, and that both files may be read."
		}
		return nil, &hinted{fmt.Errorf("the TLS certificate cannot be used: %s", oneLine(err)), hint}
	}
	return p, nil
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", " ") }

// load reads both files; the caller holds mu, or nobody else has p.
func (p *pairFiles) load() error {
	seen, err := p.marks()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return err
	}
	p.pair, p.seen, p.looked = &pair, seen, p.now()
	return nil
}

func (p *pairFiles) marks() (m [2]fileMark, err error) {
	for i, name := range []string{p.cert, p.key} {
		info, err := os.Stat(name)
		if err != nil {
			return m, err
		}
		m[i] = fileMark{info.Size(), info.ModTime()}
	}
	return m, nil
}

// current is the certificate for the next handshake. Files that do not fit
// together, because they are just being replaced, leave the old one in use.
func (p *pairFiles) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if now.Sub(p.looked) < tlsLook {
		return p.pair, nil
	}
	p.looked = now
	seen, err := p.marks()
	if err == nil && seen == p.seen {
		return p.pair, nil
	}
	if err == nil {
		err = p.load()
	}
	if err != nil {
		p.log.Warn("the TLS certificate changed and cannot be used; the old one stays", "error", err)
		return p.pair, nil
	}
	p.log.Info("TLS certificate loaded", "fingerprint", fingerprint(p.pair.Leaf))
	return p.pair, nil
}

// fingerprint is how people compare certificates: SHA-256, in hexadecimal.
func fingerprint(c *x509.Certificate) string {
	var out strings.Builder
	for i, b := range sha256.Sum256(c.Raw) {
		if i > 0 {
			out.WriteByte(':')
		}
		fmt.Fprintf(&out, "%02X", b)
	}
	return out.String()
}
