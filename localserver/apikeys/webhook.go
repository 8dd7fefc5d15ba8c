package apikeys

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hubbub/protocol/atomicfile"
	"hubbub/protocol/hint"
)

const (
	// webhookFile is in the data folder. The secrets of all accounts are derived
	// from what it holds.
	webhookFile  = "webhook.secret"
	webhookBytes = 32
)

// WebhookRoot returns the root of the webhook secrets of a data folder, 32 bytes,
// and creates it if there is none.
func WebhookRoot(dataDir string) ([]byte, error) {
	path := filepath.Join(dataDir, webhookFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		root := make([]byte, webhookBytes)
		_, _ = rand.Read(root) // never returns an error
		if err = atomicfile.CreateFile(path, root, 0o600); err == nil {
			return root, nil
		}
		raw, err = os.ReadFile(path) // another process may have created it
	}
	if err == nil && len(raw) < webhookBytes {
		err = errors.New("it is too short")
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("the secret of the webhooks, %s, cannot be used: %w", path, err), "Check the data folder and its permissions, or delete the file.")
	}
	return raw, nil
}

// SetWebhookRoot replaces the root of a data folder, by that of its cluster.
func SetWebhookRoot(dataDir string, root []byte) error {
	return atomicfile.WriteFile(filepath.Join(dataDir, webhookFile), root, 0o600)
}

// WebhookSecret is the secret with which the webhooks of an account are signed.
func WebhookSecret(root []byte, account string) string {
	mac := hmac.New(sha256.New, root)
	mac.Write([]byte("hubbub webhook\x00" + account))
	return hex.EncodeToString(mac.Sum(nil))
}
