package voices

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/atomicfile"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// filled is a store with voices of some names.
func filled(t *testing.T, list ...string) (Store, Voice) {
	t.Helper()
	v := testkit.Must(madeOnce(speech(t)))(t)
	store := Store{filepath.Join(t.TempDir(), "voices")}
	var voices []Voice
	for _, name := range list {
		voices = append(voices, New(name, v, ""))
	}
	testkit.Must(store.Put(voices...))(t)
	return store, New("", v, "")
}

// TestLongNames: every name that is allowed can be stored, renamed and removed.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("漢", protocol.MaxVoiceprintLabel)
	store, _ := filled(t, "Anna", long)
	testkit.NoError(t, store.Rename(long, long[3:]))
	if err := store.Remove(long); err == nil || !strings.HasPrefix(err.Error(), "no voiceprint of ") || hint.Of(err) == "" {
		t.Errorf("the former name: %v", err)
	}
	testkit.NoError(t, store.Remove(long[3:]))
	testkit.Equal(t, names(t, store), "Anna", "stored")
}

// TestRename keeps the voice under another name, and replaces none.
func TestRename(t *testing.T) {
	store, voice := filled(t, "Anna", "Ben")
	if err := store.Rename("Anna", "Ben"); err == nil || names(t, store) != "Anna Ben" {
		t.Errorf("%v, %s", err, names(t, store))
	}
	if err := store.Rename("Eva", "Rosa"); err == nil || err.Error() != `no voiceprint of "Eva" is stored` {
		t.Error(err)
	}
	testkit.NoError(t, store.Rename("Anna", "Eva"))
	testkit.Equal(t, names(t, store), "Ben Eva")
	var people []Voice
	for i := range protocol.MaxVoiceprints - 2 {
		voice.Name = fmt.Sprint("Person ", i)
		people = append(people, voice)
	}
	testkit.Must(store.Put(people...))(t)
	if err := store.Rename("Eva", "Anna"); err != nil || !strings.HasPrefix(names(t, store), "Anna Ben Person 0") {
		t.Errorf("a full store: %v, %s", err, names(t, store))
	}
}

// TestFolderNames: characters that mean something in a pattern are none in a folder's name.
func TestFolderNames(t *testing.T) {
	store, _ := filled(t)
	store.Dir = filepath.Join(t.TempDir(), "a[1]")
	temporary := filepath.Join(store.Dir, atomicfile.TempPrefix+"left")
	testkit.NoError(t, errors.Join(os.MkdirAll(store.Dir, 0o700), os.WriteFile(temporary, []byte("voice"), 0o600)))
	_, v := filled(t)
	v.Name = "Anna"
	testkit.Must(store.Put(v))(t)
	testkit.Equal(t, names(t, store), "Anna", "stored")
	if _, err := os.Stat(temporary); err == nil {
		t.Error("what a killed program has left is there")
	}
}

// TestCopies: a copy of a voice, as programs that synchronise folders make them, is an error:
// it would remain when the voice is removed.
func TestCopies(t *testing.T) {
	store, _ := filled(t, "Anna")
	raw := testkit.Must(os.ReadFile(store.path("Anna")))(t)
	testkit.NoError(t, os.WriteFile(filepath.Join(store.Dir, "copy.json"), raw, 0o600))
	if list, err := store.List(); err == nil || !strings.Contains(err.Error(), "copy.json") || hint.Of(err) == "" {
		t.Errorf("%d voices, %v", len(list), err)
	}
}

// TestErasedVoicesLeaveNothing: neither does a program that was killed while it erased one.
func TestErasedVoicesLeaveNothing(t *testing.T) {
	store, _ := filled(t, "Anna", "Ben")
	raw := testkit.Must(os.ReadFile(store.path("Anna")))(t)
	left := filepath.Join(store.Dir, atomicfile.TempPrefix+"erased-1")
	testkit.NoError(t, os.WriteFile(left, raw, 0o600))
	testkit.NoError(t, store.Remove("Anna"))
	entries := testkit.Must(os.ReadDir(store.Dir))(t)
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	testkit.EqualSlices(t, files, []string{filepath.Base(store.path("Ben")), "lock"}, "left")
	// The voice of an attempt that failed has no name any more.
	testkit.NoError(t, os.WriteFile(left, raw, 0o600))
	if err := store.Remove("Anna"); err == nil {
		t.Error("a voice is removed that is not stored")
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left after another attempt: %v", err)
	}
}

// TestChangesWaitForEachOther: a change of another process takes a moment.
func TestChangesWaitForEachOther(t *testing.T) {
	store, v := filled(t, "Anna")
	other := flock.New(filepath.Join(store.Dir, "lock"))
	testkit.NoError(t, other.Lock())
	time.AfterFunc(100*time.Millisecond, func() { _ = other.Unlock() })
	v.Name = "Ben"
	testkit.Must(store.Put(v))(t)
}

// TestUnreadableVoice: a file that cannot be read may be intact, so the hint does not say to delete
// it, and an export, which writes no file, has this hint, too.
func TestUnreadableVoice(t *testing.T) {
	store, _ := filled(t, "Anna")
	testkit.NoError(t, os.Remove(store.path("Anna")))
	testkit.NoError(t, os.Mkdir(store.path("Anna"), 0o700))
	exported := filepath.Join(t.TempDir(), "voices.json")
	_, err := store.List()
	for _, err := range []error{err, store.Export(exported)} {
		if err == nil || hint.Of(err) != folderHint {
			t.Errorf("%v; %s", err, hint.Of(err))
		}
	}
	if _, err := os.Stat(exported); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the exported file: %v", err)
	}
}

// TestUnusableVoice: the hint says to delete a damaged voice, because none can be added while it is
// there, and not one of a newer program. One of an earlier engine stays.
func TestUnusableVoice(t *testing.T) {
	_, v := filled(t)
	made := testkit.Must(voiceprint.Version(v.Voiceprint))(t)
	for _, c := range []struct{ from, to, hint string }{
		{`"version": 1`, `"version": 2`, "Use a newer hubbub."},
		{`"voiceprint": "`, `"voiceprint": "x`, "Delete the file, or restore it."},
		{made, "0.1", ""},
	} {
		store, _ := filled(t, "Anna")
		raw, err := os.ReadFile(store.path("Anna"))
		if err == nil {
			err = os.WriteFile(store.path("Anna"), bytes.Replace(raw, []byte(c.from), []byte(c.to), 1), 0o600)
		}
		testkit.NoError(t, err)
		if _, err := store.List(); (err == nil) != (c.hint == "") || hint.Of(err) != c.hint {
			t.Errorf("%s: %v; %s", c.to, err, hint.Of(err))
		}
	}
}
