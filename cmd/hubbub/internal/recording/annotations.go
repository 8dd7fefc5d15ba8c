package recording

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hubbub/protocol"
	"hubbub/protocol/atomicfile"
	"hubbub/protocol/hint"
)

// AnnotationsSaver saves the annotations of a session in its recording on every
// change. It has one goroutine, which Close ends.
type AnnotationsSaver struct {
	path   string
	store  *protocol.AnnotationsStore
	from   float64 // where the recording begins, in seconds of the session
	cancel context.CancelFunc
	done   chan struct{}

	// Of the goroutine, then of Close.
	file  []byte // the content that it last read or wrote; nil = there was no file
	saved int64  // revision that is in this recording; the store also counts what is in an export
	err   error  // of the newest attempt
}

// SaveAnnotations starts to save the annotations of store in the folder dir, of a
// recording that begins at a time of the session, in seconds.
func SaveAnnotations(dir string, store *protocol.AnnotationsStore, from float64) *AnnotationsSaver {
	ctx, cancel := context.WithCancel(context.Background())
	s := &AnnotationsSaver{path: filepath.Join(dir, NotesFile), store: store, from: from, cancel: cancel, done: make(chan struct{})}
	store.SavedBy(s.holds)
	s.file, _ = os.ReadFile(s.path)
	if annotations, revision := store.Load(); annotations.Equal(protocol.Annotations{}) || s.file != nil {
		s.saved = revision
	} else {
		s.save() // names from the settings
	}
	go func() {
		defer close(s.done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-store.Changes():
				s.save()
			}
		}
	}()
	return s
}

// holds reports whether the recording can hold all of the annotations.
func (s *AnnotationsSaver) holds(a protocol.Annotations) bool {
	_, whole := a.Since(s.from)
	return whole
}

func (s *AnnotationsSaver) save() {
	annotations, revision := s.store.Load()
	own, whole := annotations.Since(s.from)
	raw, err := json.MarshalIndent(own, "", "  ")
	raw = append(raw, '\n')
	now, unread := os.ReadFile(s.path)
	switch {
	case err != nil:
	case unread != nil && !errors.Is(unread, fs.ErrNotExist):
		err = unread
	case !bytes.Equal(now, s.file):
		err = hint.Add(fmt.Errorf("another program has changed %s meanwhile", s.path), "Give them again when no other hubbub shows the recording.")
	}
	if err == nil {
		err = atomicfile.WriteFile(s.path, raw, 0o666)
	}
	if err == nil && whole {
		s.store.MarkSaved(annotations, revision)
	}
	if s.err = err; err != nil {
		s.store.SavedBy(nil)
		return
	}
	s.saved, s.file = revision, raw
	s.store.SavedBy(s.holds)
}

// Close saves the last changes and reports whether everything is saved.
func (s *AnnotationsSaver) Close() error {
	defer s.store.SavedBy(nil)
	s.cancel()
	<-s.done
	if _, revision := s.store.Load(); revision != s.saved {
		s.save()
	}
	if s.err == nil {
		return nil
	}
	return hint.Add(fmt.Errorf("names and bookmarks were not saved: %w", s.err),
		cmp.Or(hint.Of(s.err), "See whether the folder may be written to and the disk has room."))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
