package localserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"hubbub/localserver/apikeys"
	"hubbub/localserver/jobs"
	"hubbub/localserver/outbound"
	"hubbub/localserver/store/datafolder"
	"hubbub/protocol/hint"
	"hubbub/protocol/words"
)

// webhookRoot returns the root of the webhook secrets: that of the data folder, on
// a cluster that of all nodes, which is then written to the folder.
func (s *Server) webhookRoot(ctx context.Context) (root []byte, err error) {
	dir := s.options.DataDir
	if dir != "" {
		if root, err = apikeys.WebhookRoot(dir); err != nil {
			return nil, err
		}
	} else {
		root = make([]byte, 32)
		_, _ = rand.Read(root) // never returns an error
	}
	if !s.store.Shared() {
		return root, nil
	}
	shared, err := s.store.ShareSecret(ctx, "webhooks", root)
	if err == nil && dir != "" && !bytes.Equal(root, shared) {
		err = apikeys.SetWebhookRoot(dir, shared)
	}
	return shared, err
}

// startJobs starts the workers of jobs.
func (s *Server) startJobs(ctx context.Context) error {
	root, err := s.webhookRoot(ctx)
	if err != nil {
		return err
	}
	// The hosts were validated with the options.
	s.fetch.Hosts, _ = outbound.ParseHosts(s.options.FetchFrom)
	s.hooks.Hosts, _ = outbound.ParseHosts(s.options.WebhookTo)
	s.hooks.Others, s.hooks.Private = true, true
	recogniser := s.options.Words
	if recogniser != nil { // streams can always use half of what it does at the same time
		recogniser = words.Limit(recogniser, wordsAtOnce()/2)
	}
	dir := filepath.Join(s.store.Folder(), datafolder.Jobs)
	// What an earlier process left there is of no use.
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return hint.Add(fmt.Errorf("the folder for the audio of jobs cannot be made: %w", err), "Make the data folder writable.")
	}
	s.jobs = jobs.Start(jobs.Options{Store: s.store, Workers: max(s.options.Jobs, 0),
		Words: recogniser, Fetch: s.fetch, Hooks: s.hooks, HookSecret: func(account string) string { return apikeys.WebhookSecret(root, account) },
		Dir: dir, Busy: s.overload.Delayed, Now: s.now, Counters: &s.jobCounters, Logger: s.log})
	return nil
}
