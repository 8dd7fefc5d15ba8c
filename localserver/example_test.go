package localserver_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"hubbub/localserver"
	"hubbub/protocol"
)

// A program has a diarization service of its own with one call.
func ExampleStart() {
	ctx := context.Background()
	server, err := localserver.Start(ctx, localserver.Options{
		Addr:    "127.0.0.1:0",
		APIKeys: []string{"a-secret"},
		// DataDir: "/var/lib/service" keeps sessions, media and the certificate.
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // open streams are finished first
	}()

	client, err := protocol.NewClient(protocol.ClientOptions{
		BaseURL: server.URL(), CACert: server.CAPEM(), APIKey: "a-secret"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	stream, err := client.CreateStream(ctx, map[string]any{"title": "Monday"})
	if err != nil {
		log.Fatal(err)
	}
	status, err := client.StreamStatus(ctx, stream.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Status, string(status.Input))
	// Output: created {"title":"Monday"}
}
