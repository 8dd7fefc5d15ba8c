// Package voices stores the voiceprints of people whom their user wants to
// recognise: one JSON file for each person, in one folder, readable by the user
// only.
package voices

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/atomicfile"
	"hubbub/protocol/hint"
)

// formatVersion is the version of the files.
const formatVersion = 1

// Voice is one stored person.
type Voice struct {
	Version    int       `json:"version"`
	Name       string    `json:"name"`
	Added      time.Time `json:"added"`
	Voiceprint string    `json:"voiceprint"`
	// Recording is the folder of the recording that it was learnt from; "" = none.
	Recording string `json:"recording,omitempty"`
	// Recorded is the speaker's name in that recording; "" = Name.
	Recorded string `json:"recorded,omitempty"`
}

// New is a voice added now. recording is "" if it was not learnt from one.
func New(name string, v voiceprint.Voiceprint, recording string) Voice {
	return Voice{Version: formatVersion, Name: name, Added: time.Now().UTC().Truncate(time.Second), Voiceprint: v.String(), Recording: recording}
}

// Outdated reports whether the voiceprint was made by another engine version.
func (v Voice) Outdated() bool { return !voiceprint.Current(v.Voiceprint) }

// Check reports what is not valid. A voiceprint of another engine version is.
func (v Voice) Check() error {
	if v.Version != formatVersion {
		return hint.Add(fmt.Errorf("the file has version %d; this program reads version %d", v.Version, formatVersion), "Use a newer hubbub.")
	}
	if err := protocol.CheckVoiceprintLabel(v.Name); err != nil {
		return hint.Add(fmt.Errorf("the name %q cannot be used: it %w", protocol.Clean(v.Name, 100), err), "Choose another name.")
	}
	_, err := voiceprint.Parse(v.Voiceprint)
	if err != nil && !errors.Is(err, voiceprint.ErrOutdated) {
		return fmt.Errorf("the voiceprint of %s cannot be used: %w", v.Name, err)
	}
	return nil
}

// Store is a folder of voices.
type Store struct{ Dir string }

// Default is the store in the user's data folder: $XDG_DATA_HOME/hubbub/voices, or
// ~/.local/share/hubbub/voices.
func Default() (Store, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return Store{filepath.Join(dir, "hubbub", "voices")}, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return Store{}, hint.Add(fmt.Errorf("there is no folder for voices: %w", err), "Set XDG_DATA_HOME.")
	}
	return Store{filepath.Join(home, ".local", "share", "hubbub", "voices")}, nil
}

// maxPlain is the longest name, in bytes, whose file has it in hexadecimal.
const maxPlain = 125

// path is the file of a name: hexadecimal, or the hash of a long one, so that any name has
// a file name.
func (s Store) path(name string) string {
	raw := []byte(name)
	if len(raw) > maxPlain {
		sum := sha256.Sum256(raw)
		raw = sum[:]
	}
	return filepath.Join(s.Dir, hex.EncodeToString(raw)+".json")
}

// List returns the voices in order of name. A file that cannot be read is an
// error that names it.
func (s Store) List() (list []Voice, err error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Add(fmt.Errorf("the folder of voices cannot be read: %w", err), folderHint)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		path := filepath.Join(s.Dir, e.Name())
		raw, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			continue
		case err != nil: // the file may be intact
			return nil, hint.Add(fmt.Errorf("a voiceprint cannot be read: %w", err), folderHint)
		}
		var v Voice
		if err = json.Unmarshal(raw, &v); err == nil {
			err = v.Check()
		}
		if err == nil && path != s.path(v.Name) { // a copy, which Remove would not find
			err = fmt.Errorf("the voice of %s has another file name", v.Name)
		}
		if err != nil {
			return nil, hint.Add(fmt.Errorf("%s cannot be used: %w", path, protocol.WrongType(err)), cmp.Or(hint.Of(err), "Delete the file, or restore it."))
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b Voice) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Put stores voices and returns those of the same names, which they replace. With voices
// that are not valid, or too many, none is stored; an error of the disk ends it.
func (s Store) Put(voices ...Voice) (replaced []Voice, err error) {
	for _, v := range voices {
		if err := v.Check(); err != nil {
			return nil, err
		}
	}
	err = s.locked(func() error {
		has, err := s.List()
		if err != nil {
			return err
		}
		names := map[string]bool{}
		for _, v := range voices {
			names[v.Name] = true
		}
		for _, v := range has {
			if names[v.Name] {
				replaced = append(replaced, v)
			}
			names[v.Name] = true
		}
		if len(names) > protocol.MaxVoiceprints {
			return hint.Add(fmt.Errorf("more than %d voiceprints", protocol.MaxVoiceprints), "Remove some with `hubbub voices remove`.")
		}
		for _, v := range voices {
			if err := s.write(v); err != nil {
				return fmt.Errorf("the voiceprint of %s could not be stored: %w", v.Name, err)
			}
		}
		return nil
	})
	return replaced, err
}

// write replaces a file in one step.
func (s Store) write(v Voice) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(s.path(v.Name), append(raw, '\n'), 0o600)
}

func notStored(name string) error {
	return hint.Add(fmt.Errorf("no voiceprint of %q is stored", protocol.Clean(name, 100)), "List them with `hubbub voices`.")
}

// Rename gives a stored voice another name. A name that has a voice already is an error.
func (s Store) Rename(from, to string) error {
	return s.locked(func() error {
		list, err := s.List()
		i := index(list, from)
		switch {
		case err != nil:
			return err
		case i < 0:
			return notStored(from)
		case from == to:
			return nil
		case index(list, to) >= 0:
			return hint.Add(fmt.Errorf("there is a voiceprint of %s already", to), "Remove that one first with `hubbub voices remove`, or choose another name.")
		}
		v := list[i]
		if v.Recording != "" { // where `voices learn --outdated` finds the speaker by name
			v.Recorded = cmp.Or(v.Recorded, v.Name)
		}
		v.Name = to
		if err = v.Check(); err != nil {
			return err
		}
		if err = s.write(v); err == nil { // only then is the former one erased
			err = s.erase(from)
		}
		if err != nil {
			return fmt.Errorf("the voiceprint of %s could not be renamed: %w", from, err)
		}
		return nil
	})
}

// index is where the voice of a name is in a list, or -1.
func index(list []Voice, name string) int {
	return slices.IndexFunc(list, func(v Voice) bool { return v.Name == name })
}

// People are those of the voices that are not outdated.
func People(list []Voice) (people []voiceprint.Person) {
	for _, v := range list {
		if print, err := voiceprint.Parse(v.Voiceprint); err == nil {
			people = append(people, voiceprint.Person{Label: v.Name, Voiceprint: print})
		}
	}
	return people
}

// neverFile says that the user does not want to be asked.
const neverFile = "never-ask"

// Asks reports whether the user may be asked to remember a voice.
func (s Store) Asks() bool {
	_, err := os.Stat(filepath.Join(s.Dir, neverFile))
	return err != nil
}

// Never makes Asks false from now on, until the file that it writes is deleted.
func (s Store) Never() error {
	return s.locked(func() error {
		return os.WriteFile(filepath.Join(s.Dir, neverFile), []byte("hubbub does not offer to remember voices while this file exists.\n"), 0o600)
	})
}

// Remove overwrites and deletes the voice of a name. After an attempt that failed, another one
// deletes what is left.
func (s Store) Remove(name string) error {
	_, err := os.Stat(s.Dir) // the lock would make the folder
	if err == nil {
		err = s.locked(func() error { return s.erase(name) })
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notStored(name)
	case err != nil:
		return fmt.Errorf("the voiceprint of %s could not be removed: %w", name, err)
	}
	return nil
}

// erase deletes the voice of a name, and overwrites it then: no reader sees that. The store is
// locked.
func (s Store) erase(name string) error {
	hidden := filepath.Join(s.Dir, fmt.Sprintf("%serased-%08x", atomicfile.TempPrefix, rand.Uint32()))
	if err := os.Rename(s.path(name), hidden); err != nil {
		return err
	}
	return overwrite(hidden)
}

func overwrite(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil {
		_, err = file.Write(make([]byte, info.Size()))
	}
	return errors.Join(err, file.Sync(), file.Close(), os.Remove(path))
}

// lockWait is how long a change of the store waits for one of another process.
const lockWait = 5 * time.Second

const folderHint = "Make the folder readable and writable, or set XDG_DATA_HOME to another one."

// locked runs f while no other process changes the store.
func (s Store) locked(f func() error) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return hint.Add(fmt.Errorf("the folder of voices could not be made: %w", err), folderHint)
	}
	lock := flock.New(filepath.Join(s.Dir, "lock"), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	ok, err := lock.TryLockContext(ctx, 20*time.Millisecond)
	if err != nil && ctx.Err() == nil {
		return hint.Add(fmt.Errorf("the folder of voices could not be locked: %w", err), folderHint)
	}
	if !ok {
		return hint.Add(fmt.Errorf("another hubbub changes the voices in %s", s.Dir), "Try again when it has finished.")
	}
	defer func() { _ = lock.Unlock() }()
	// What a program that was killed has left: it held the lock.
	entries, err := os.ReadDir(s.Dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), atomicfile.TempPrefix) {
			err = errors.Join(err, overwrite(filepath.Join(s.Dir, e.Name())))
		}
	}
	if err != nil {
		return hint.Add(fmt.Errorf("the folder of voices could not be cleaned: %w", err), folderHint)
	}
	return f()
}
