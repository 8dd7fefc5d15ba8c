package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// recording is one audio file with its reference.
type recording struct {
	name  string // as in the reference
	audio string // path
	ref   []protocol.FileTurn
	uem   []protocol.UEMRegion // nil: all of the reference and the hypothesis is scored
}

// set is a folder of recordings.
type set struct {
	name       string
	recordings []recording
}

// count is the number of recordings.
func count(sets []set) (n int) {
	for _, s := range sets {
		n += len(s.recordings)
	}
	return n
}

var audioEndings = []string{".flac", ".wav", ".mp3"}

// findSets reads the sets that exist; it is an error when none does, or with all when one does not.
func findSets(dir string, names []string, all bool) ([]set, error) {
	const next = "name their folder by --dir, or one recording by --ref X.rttm --wav X.wav"
	var sets []set
	for _, name := range names {
		folder := filepath.Join(dir, name)
		references, _ := fs.Glob(os.DirFS(folder), "*.rttm") // the pattern is valid
		slices.Sort(references)
		s := set{name: name}
		for _, reference := range references {
			path := filepath.Join(folder, reference)
			base := strings.TrimSuffix(path, ".rttm")
			audio, err := audioOf(base)
			if err != nil {
				return nil, err
			}
			r, err := readRecording(audio, path)
			if err != nil {
				return nil, err
			}
			s.recordings = append(s.recordings, r)
		}
		switch {
		case len(s.recordings) > 0:
			sets = append(sets, s)
		case all:
			return nil, hint.Errorf(next, "there is no set %s in %s", name, dir)
		}
	}
	if len(sets) == 0 {
		return nil, hint.Errorf(next, "none of the sets %s is in %s", strings.Join(names, ", "), dir)
	}
	return sets, nil
}

// checkNames rejects sets of which two recordings would be written to one file.
func checkNames(sets []set) error {
	names := map[string]bool{}
	for _, s := range sets {
		for _, r := range s.recordings {
			if names[r.name] {
				return usagef("give --sets one at a time, and a folder for each", "two recordings are called %s: they would be written to one file", r.name)
			}
			names[r.name] = true
		}
	}
	return nil
}

func audioOf(base string) (string, error) {
	for _, ending := range audioEndings {
		if _, err := os.Stat(base + ending); err == nil {
			return base + ending, nil
		}
	}
	return "", fmt.Errorf("%s.rttm has no audio (%s) beside it", base, strings.Join(audioEndings, ", "))
}

// readRecording reads a recording's reference, and the UEM beside it if there is one. The
// file name in the RTTM is the audio's base name, or the only one in it.
func readRecording(audio, ref string) (recording, error) {
	r := recording{name: strings.TrimSuffix(filepath.Base(audio), filepath.Ext(audio)), audio: audio}
	turns, err := readFile(ref, protocol.ReadRTTM)
	if err != nil {
		return r, err
	}
	if len(turns) > 0 && !slices.ContainsFunc(turns, func(t protocol.FileTurn) bool { return t.File != turns[0].File }) {
		r.name = turns[0].File
	}
	r.ref = slices.DeleteFunc(turns, func(t protocol.FileTurn) bool { return t.File != r.name })
	if len(r.ref) == 0 {
		return r, hint.Add(fmt.Errorf("%s holds no turn of %s", ref, r.name),
			"the second field of its lines must be the audio's name without ending")
	}
	uem := strings.TrimSuffix(ref, ".rttm") + ".uem"
	regions, err := readFile(uem, protocol.ReadUEM)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	r.uem = slices.DeleteFunc(regions, func(u protocol.UEMRegion) bool { return u.File != r.name })
	if len(r.uem) == 0 {
		return r, fmt.Errorf("%s holds no region of %s", uem, r.name)
	}
	return r, nil
}

func readFile[T any](path string, read func(io.Reader) ([]T, error)) ([]T, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	list, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// amplify changes the level of samples by decibels.
func amplify(samples []float32, decibels float64) {
	if decibels == 0 {
		return
	}
	factor := float32(math.Pow(10, decibels/20))
	for i := range samples {
		samples[i] *= factor
	}
}
