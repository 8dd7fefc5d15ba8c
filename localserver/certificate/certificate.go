// Package certificate has the server's TLS certificate: a self-signed one that it
// creates, or one in files of the operator.
package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"hubbub/protocol/atomicfile"
	"hubbub/protocol/hint"
)

const (
	// validity is that of a self-signed certificate: the longest
	// that today's clients accept.
	validity = 397 * 24 * time.Hour
	// renewBefore is how long a certificate in the data folder must still be
	// valid when the server starts. A server that runs renews its own only when it has
	// expired: clients have to trust the new one first.
	renewBefore = 30 * 24 * time.Hour
	// File is the file in the data folder with certificate and key.
	File = "tls.pem"
	// caFile is the file with the certificate that clients need to trust.
	caFile = "ca.pem"
)

// Mode is where the server's certificate comes from.
type Mode string

// The modes.
const (
	// SelfSigned creates a certificate for the hosts that Load is given, localhost,
	// 127.0.0.1 and ::1. In a data folder it is stored, readable by its owner only.
	SelfSigned Mode = "self-signed"
	// Off serves plain HTTP and WebSocket, behind a proxy that terminates TLS.
	Off Mode = "off"
	// Files reads a certificate and its key from files, and reads them again
	// whenever they change.
	Files Mode = "files"
)

// Config says how connections are secured.
type Config struct {
	Mode Mode
	// Cert and Key are the PEM files of Files, the certificate with its
	// chain.
	Cert, Key string
}

// String is the value of the flag --tls.
func (c Config) String() string {
	if c.Mode == Files {
		return c.Cert + "," + c.Key
	}
	return string(c.Mode)
}

// Parse parses the value of the flag --tls: self-signed, off, or CERT,KEY.
func Parse(s string) (Config, error) {
	switch m := Mode(s); m {
	case SelfSigned, Off:
		return Config{Mode: m}, nil
	}
	if cert, key, ok := strings.Cut(s, ","); ok && cert != "" && key != "" {
		return Config{Mode: Files, Cert: cert, Key: key}, nil
	}
	return Config{}, hint.Add(fmt.Errorf("unknown TLS mode %q", s), "Choose self-signed, off, or CERT,KEY: two PEM files.")
}

// Certificate is a self-signed certificate, or one in files of the operator, which another
// program renews: a handshake checks whether they have changed, so that no restart is
// needed. A nil one is that of a server without TLS.
type Certificate struct {
	cert, key string // the files, "" for a self-signed one
	log       *slog.Logger
	now       func() time.Time
	renew     func() (*Certificate, error) // replaces a self-signed one in a folder that has expired; nil for others

	mu      sync.Mutex
	pair    *tls.Certificate
	checked time.Time
	loaded  [sha256.Size]byte // hash of the loaded files
}

// Load returns the certificate of the configured mode for the hosts, nil for Off. A
// self-signed one is in the folder dir, with the file for its clients; "" stores
// nothing. Errors carry a hint.
func Load(o Config, dir string, hosts []string, now func() time.Time, log *slog.Logger) (*Certificate, error) {
	switch o.Mode {
	case Off:
		return nil, nil
	case Files:
		return loadFiles(o.Cert, o.Key, log, now)
	}
	c, err := Create(dir, now(), hosts...)
	if err != nil {
		return nil, err
	}
	attributes := []any{"fingerprint", fingerprint(c.pair.Leaf)}
	if dir != "" {
		file := filepath.Join(dir, caFile)
		if err := writeCA(file, c.CAPEM()); err != nil {
			return nil, hint.Add(fmt.Errorf("the certificate for clients cannot be stored: %w", err), "Check the permissions of the data folder.")
		}
		attributes = append(attributes, "ca", file)
	}
	log.Info("self-signed certificate; clients trust it with --ca", attributes...)
	if from := c.pair.Leaf.NotBefore; now().Before(from) {
		log.Warn("the TLS certificate is not valid yet: the clock is behind, or it was ahead; if it is right, delete the certificate and restart",
			"from", from, "file", filepath.Join(dir, File))
	}
	c.log, c.now = log, now
	if dir != "" { // otherwise no client could learn to trust another one
		c.renew = func() (*Certificate, error) { return Load(o, dir, hosts, now, log) }
	}
	return c, nil
}

// CAPEM is what a client needs to trust a self-signed certificate, nil for others.
func (c *Certificate) CAPEM() []byte {
	if c == nil || c.cert != "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.pair.Certificate[0]})
}

// writeCA writes what clients need, readable by everybody, since nothing in it
// is secret.
func writeCA(file string, raw []byte) error {
	if old, err := os.ReadFile(file); err != nil || !bytes.Equal(old, raw) {
		if err := atomicfile.WriteFile(file, raw, 0o600); err != nil {
			return err
		}
	}
	return os.Chmod(file, 0o644)
}

// Create returns the self-signed certificate in dir if it is still valid for the hosts,
// else a new one, which it stores there unless dir is "".
func Create(dir string, now time.Time, hosts ...string) (*Certificate, error) {
	names, addresses := Names(hosts)
	file := filepath.Join(dir, File)
	if dir != "" {
		raw, err := os.ReadFile(file)
		if err == nil {
			if c, err := parse(raw); err == nil && c.valid(names, addresses, now) {
				return c, nil
			}
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, hint.Add(fmt.Errorf("the certificate cannot be read: %w", err), "Check the permissions of the data folder.")
		}
	}
	raw, err := create(names, addresses, now)
	if err != nil {
		return nil, hint.Add(fmt.Errorf("no certificate could be created: %w", err), "Write names of hosts in ASCII (xn--...), or give a certificate of your own.")
	}
	if dir != "" {
		if err := atomicfile.WriteFile(file, raw, 0o600); err != nil {
			return nil, hint.Add(fmt.Errorf("the certificate cannot be stored: %w", err), "Check the permissions of the data folder.")
		}
	}
	return parse(raw)
}

// Names are the names under which a server is reached from its own
// machine, and the given hosts.
func Names(hosts []string) (names []string, addresses []net.IP) {
	names = []string{"localhost"}
	addresses = []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv6loopback}
	for _, host := range hosts {
		switch ip := net.ParseIP(host); {
		case ip == nil && host != "" && !slices.Contains(names, host):
			names = append(names, host)
		case ip != nil && !ip.IsUnspecified() && !slices.ContainsFunc(addresses, ip.Equal):
			addresses = append(addresses, ip)
		}
	}
	return names, addresses
}

// create returns a new certificate and its key as PEM.
func create(names []string, addresses []net.IP, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "hubbub"},
		// Clocks may differ.
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity - time.Hour),
		DNSNames: names, IPAddresses: addresses,
		// It is its own CA, for clients that require one.
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	_ = pem.Encode(&out, &pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	return out.Bytes(), nil
}

func parse(raw []byte) (*Certificate, error) {
	pair, err := tls.X509KeyPair(raw, raw)
	if err != nil {
		return nil, err
	}
	return &Certificate{pair: &pair}, nil
}

// valid reports whether the certificate covers all names, and will for
// renewBefore. One that is not valid yet is kept, because clients trust it: the clock of a
// machine may be behind until it is synchronised.
func (c *Certificate) valid(names []string, addresses []net.IP, now time.Time) bool {
	leaf := c.pair.Leaf
	if now.Add(renewBefore).After(leaf.NotAfter) {
		return false
	}
	for _, a := range addresses {
		names = append(names, a.String())
	}
	return !slices.ContainsFunc(names, func(n string) bool { return leaf.VerifyHostname(n) != nil })
}

// Covers reports whether the certificate is for a host.
func (c *Certificate) Covers(host string) bool {
	return c != nil && c.current().Leaf.VerifyHostname(host) == nil
}

// Config is the configuration of the listener, nil without TLS.
func (c *Certificate) Config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil }}
}

// fileCheckInterval is how often the files of a certificate are checked for
// changes, and how often the renewal of an expired one is tried, at most.
const fileCheckInterval = time.Second

// loadFiles reads both files. Errors carry a hint.
func loadFiles(cert, key string, log *slog.Logger, now func() time.Time) (*Certificate, error) {
	c := &Certificate{cert: cert, key: key, log: log, now: now}
	if err := c.load(); err != nil {
		next := "Give the certificate (with its chain) and its private key, both as PEM: --tls CERT,KEY."
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			next = "Check the paths of --tls CERT,KEY, and that both files are readable."
		}
		return nil, hint.Add(fmt.Errorf("the TLS certificate cannot be used: %s", strings.ReplaceAll(err.Error(), "\n", " ")), next)
	}
	return c, nil
}

// load reads both files unless they are the loaded ones. The caller holds mu, or is the
// only user of c.
func (c *Certificate) load() error {
	c.checked = c.now()
	cert, err := os.ReadFile(c.cert)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(c.key)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(slices.Concat(cert, key))
	if sum == c.loaded {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return err
	}
	c.pair, c.loaded = &pair, sum
	c.log.Info("TLS certificate loaded", "fingerprint", fingerprint(pair.Leaf), "expires", pair.Leaf.NotAfter)
	if c.checked.After(pair.Leaf.NotAfter) {
		c.log.Warn("the TLS certificate has expired: clients refuse it until its files are replaced", "file", c.cert)
	}
	return nil
}

// current is the certificate for the next handshake. It stays the old one while
// the files do not match, because they are being replaced.
func (c *Certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cert != "" && c.now().Sub(c.checked) >= fileCheckInterval:
		if err := c.load(); err != nil {
			c.log.Warn("the changed TLS certificate cannot be used; the old one stays in use", "error", err)
		}
	case c.renew != nil && c.now().After(c.pair.Leaf.NotAfter) && c.now().Sub(c.checked) >= fileCheckInterval:
		c.checked = c.now()
		if renewed, err := c.renew(); err != nil {
			c.log.Error("the TLS certificate has expired and could not be renewed", "error", err)
		} else {
			c.pair = renewed.pair
		}
	}
	return c.pair
}

// fingerprint is the SHA-256 fingerprint of a certificate, in hexadecimal.
func fingerprint(c *x509.Certificate) string {
	return strings.ReplaceAll(fmt.Sprintf("% X", sha256.Sum256(c.Raw)), " ", ":")
}
