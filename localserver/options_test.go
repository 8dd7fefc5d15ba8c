package localserver

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// The password in an address that cannot be used is not displayed.
func TestAddressesShowNoSecret(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"foo://user:hunter2@host", "user:hunter2@host:99999", "nats://user:%hunter2@host", "nats://host:1,foo://host?key=hunter2"} {
		err := Options{Addr: "127.0.0.1:0", NATS: address}.Validate()
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"https://user:hunter2@host", "https://user:%hunter2@host", "https://host?key=hunter2", "user:hunter2@host"} {
		_, err := Start(context.Background(), Options{Addr: "127.0.0.1:0", APIKeys: []string{"k"}, PublicURL: address})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A data folder that cannot be used is an error, and nothing else is said about it.
func TestDataFolderThatIsAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	testkit.NoError(t, os.WriteFile(file, nil, 0o600))
	var log bytes.Buffer
	_, err := Start(context.Background(), Options{Addr: "127.0.0.1:0", DataDir: file, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err == nil || log.Len() > 0 {
		t.Errorf("%v\n%s", err, log.String())
	}
}
