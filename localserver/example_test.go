package localserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net/http"
	"strings"
	"time"

	"hubbub/localserver"
)

// A program has a diarization service of its own with one call.
func ExampleStart() {
	ctx := context.Background()
	server, err := localserver.Start(ctx, localserver.Options{
		Addr:    "127.0.0.1:0",
		APIKeys: []string{"a-secret"},
		// DataDir: "/var/lib/service" keeps streams, media and the certificate.
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // open streams are finished first
	}()

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(server.CAPEM())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL()+"/v1/live", strings.NewReader(`{"title":"Monday"}`))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer a-secret")
	resp, err := client.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}
