package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"hubbub/protocol"
)

// notesKeeper writes what people add to a session into a folder, on every
// change. A nil *notesKeeper keeps nothing.
type notesKeeper struct {
	path  string
	store *protocol.AnnotationsStore
	stop  context.CancelFunc
	done  chan struct{}

	mu  sync.Mutex
	err error // of the newest attempt
}

// keepNotes begins to keep store in dir; close ends it.
func keepNotes(dir string, store *protocol.AnnotationsStore) *notesKeeper {
	ctx, stop := context.WithCancel(context.Background())
	k := &notesKeeper{path: filepath.Join(dir, notesFile), store: store, stop: stop, done: make(chan struct{})}
	if notes, _ := store.Load(); !notes.Empty() && !exists(k.path) {
		k.save() // names that the settings gave
	}
	go func() {
		defer close(k.done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-store.Changes():
				k.save()
			}
		}
	}()
	return k
}

func (k *notesKeeper) save() {
	notes, revision := k.store.Load()
	raw, err := json.MarshalIndent(notes, "", "  ")
	if err == nil {
		err = replaceFile(k.path, append(raw, '\n'))
	}
	if err == nil {
		k.store.MarkSaved(revision)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
}

// close keeps what is new and tells whether everything was kept.
func (k *notesKeeper) close() error {
	if k == nil {
		return nil
	}
	k.stop()
	<-k.done
	if k.store.Unsaved() {
		k.save()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		return nil
	}
	return &failure{fmt.Errorf("names and bookmarks were not kept: %w", k.err), "See whether the folder may be written to and the disk has room."}
}

// replaceFile puts a file in the place of another one in one step: whoever
// reads it, also after a crash, sees all of the old one or all of the new.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
