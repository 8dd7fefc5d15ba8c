package localserver

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
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// certificateLife is how long a self-signed certificate is good for: the
	// longest that today's clients accept of any.
	certificateLife = 397 * 24 * time.Hour
	// renewBefore is how much of it must be left at the start of a server
	// that finds one in its data folder.
	renewBefore = 30 * 24 * time.Hour
	// keptCertificate is the file in the data folder, certificate and key.
	keptCertificate = "tls.pem"
	// authority is the file beside it that clients are given to trust.
	authority = "ca.pem"
)

// certificate is a self-signed one and what clients need to trust it, or one
// in files, which clients trust for reasons of their own.
type certificate struct {
	pair  tls.Certificate
	caPEM []byte
	files *pairFiles
}

// certificate makes or finds what the options ask for, nil for none.
func (s *Server) certificate() (*certificate, error) {
	switch o := s.options; o.TLS.Mode {
	case TLSOff:
		return nil, nil
	case TLSFiles:
		files, err := loadPair(o.TLS.Cert, o.TLS.Key, s.log, s.now)
		if err != nil {
			return nil, err
		}
		s.log.Info("TLS certificate loaded", "fingerprint", fingerprint(files.pair.Leaf))
		return &certificate{files: files}, nil
	}
	c, err := selfSigned(s.options.DataDir, s.now(), s.hosts()...)
	if err != nil {
		return nil, err
	}
	told := []any{"fingerprint", fingerprint(c.pair.Leaf)}
	if dir := s.options.DataDir; dir != "" {
		file := filepath.Join(dir, authority)
		if err := keepAuthority(file, c.caPEM); err != nil {
			return nil, &hinted{fmt.Errorf("the certificate for clients cannot be kept: %w", err), "Check the rights of the data folder."}
		}
		told = append(told, "ca", file)
	}
	s.log.Info("self-signed certificate; clients trust it with --ca", told...)
	return c, nil
}

// keepAuthority writes what clients need, for everybody to read; there is
// nothing secret in it.
func keepAuthority(file string, raw []byte) error {
	if old, err := os.ReadFile(file); err != nil || !bytes.Equal(old, raw) {
		if err := writeWhole(file, raw); err != nil {
			return err
		}
	}
	return os.Chmod(file, 0o644)
}

// selfSigned returns the certificate kept in dir if it is still good for the
// hosts, else a new one, which is kept there if dir is not "".
func selfSigned(dir string, now time.Time, hosts ...string) (*certificate, error) {
	names, addresses := certificateNames(hosts)
	file := filepath.Join(dir, keptCertificate)
	if dir != "" {
		raw, err := os.ReadFile(file)
		if err == nil {
			if c, err := parseCertificate(raw); err == nil && c.good(names, addresses, now) {
				return c, nil
			}
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, &hinted{fmt.Errorf("the certificate cannot be read: %w", err), "Check the rights of the data folder."}
		}
	}
	raw, err := makeCertificate(names, addresses, now)
	if err != nil {
		return nil, fmt.Errorf("no certificate could be made: %w", err)
	}
	if dir != "" {
		if err := writeWhole(file, raw); err != nil {
			return nil, &hinted{fmt.Errorf("the certificate cannot be kept: %w", err), "Check the rights of the data folder."}
		}
	}
	return parseCertificate(raw)
}

// certificateNames are the names under which a server is reached from its own
// machine, and the hosts that it was told to listen on or to be known as.
func certificateNames(hosts []string) (names []string, addresses []net.IP) {
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

// makeCertificate returns certificate and key as PEM.
func makeCertificate(names []string, addresses []net.IP, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "hubbub"},
		// Clocks differ a little.
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife - time.Hour),
		DNSNames: names, IPAddresses: addresses,
		// It is its own authority, for clients that insist on one.
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

func parseCertificate(raw []byte) (*certificate, error) {
	pair, err := tls.X509KeyPair(raw, raw)
	if err != nil {
		return nil, err
	}
	return &certificate{pair: pair, caPEM: pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})}, nil
}

// good tells whether the certificate covers all names for a while yet.
func (c *certificate) good(names []string, addresses []net.IP, now time.Time) bool {
	leaf := c.pair.Leaf
	if now.Before(leaf.NotBefore) || now.Add(renewBefore).After(leaf.NotAfter) {
		return false
	}
	for _, a := range addresses {
		names = append(names, a.String())
	}
	return !slices.ContainsFunc(names, func(n string) bool { return leaf.VerifyHostname(n) != nil })
}

// config is what the listener needs.
func (c *certificate) config() *tls.Config {
	if c.files != nil {
		return &tls.Config{GetCertificate: c.files.current, MinVersion: tls.VersionTLS12}
	}
	return &tls.Config{Certificates: []tls.Certificate{c.pair}, MinVersion: tls.VersionTLS12}
}

// writeWhole writes a file for its owner only, so that there is either the old
// or the new one, whenever the process ends.
func writeWhole(file string, raw []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(raw)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
