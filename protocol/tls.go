package protocol

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
)

// tlsConfig verifies the server by the system's authorities and by those that
// the options add; with Insecure not at all.
func tlsConfig(o ClientOptions) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.Insecure} // the user asked for it
	if o.Insecure || (o.CAFile == "" && len(o.CACert) == 0) {
		return c, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // a machine without any authorities can still trust the added ones
		pool = x509.NewCertPool()
	}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			hint := "--ca takes a file with certificates in PEM form"
			if errors.Is(err, fs.ErrPermission) {
				hint = "give this user the right to read the file"
			}
			return nil, withHint(hint, "reading the certificates of --ca: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, withHint("it must hold at least one block that begins with -----BEGIN CERTIFICATE-----",
				"the file of --ca, %s, holds no certificate in PEM form", Clean(o.CAFile, 200))
		}
	}
	if len(o.CACert) > 0 && !pool.AppendCertsFromPEM(o.CACert) {
		return nil, errors.New("the certificate of the built-in server is not in PEM form")
	}
	c.RootCAs = pool
	return c, nil
}
