package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"hubbub/localserver/engine/evaluation"
)

// recording is one audio file with its truth.
type recording struct {
	name  string // as in the reference
	audio string // path
	ref   []evaluation.Turn
	uem   []evaluation.Region // nil: as far as turns reach
}

// set is a folder of recordings.
type set struct {
	name       string
	recordings []recording
}

var audioEndings = []string{".flac", ".wav", ".mp3"}

// findSets reads the sets that are there; it is an error when none is.
func findSets(dir string, names []string) ([]set, error) {
	var sets []set
	for _, name := range names {
		references, err := filepath.Glob(filepath.Join(dir, name, "*.rttm"))
		if err != nil {
			return nil, err
		}
		sort.Strings(references)
		s := set{name: name}
		for _, path := range references {
			base := strings.TrimSuffix(path, ".rttm")
			audio, err := audioOf(base)
			if err != nil {
				return nil, err
			}
			r, err := readRecording(audio, path, base+".uem")
			if err != nil {
				return nil, err
			}
			s.recordings = append(s.recordings, r)
		}
		if len(s.recordings) > 0 {
			sets = append(sets, s)
		}
	}
	if len(sets) == 0 {
		return nil, &hinted{fmt.Errorf("none of the sets %s is in %s", strings.Join(names, ", "), dir),
			"name their folder by --dir, or one recording by --ref X.rttm --wav X.wav"}
	}
	return sets, nil
}

func audioOf(base string) (string, error) {
	for _, ending := range audioEndings {
		if _, err := os.Stat(base + ending); err == nil {
			return base + ending, nil
		}
	}
	return "", fmt.Errorf("%s.rttm has no audio (%s) beside it", base, strings.Join(audioEndings, ", "))
}

// ownRecording is one recording as a set.
func ownRecording(ref, audio, uem string) (set, error) {
	r, err := readRecording(audio, ref, uem)
	return set{name: r.name, recordings: []recording{r}}, err
}

// readRecording reads a recording's truth. The reference speaks of the audio
// by its base name, or of one file only; a UEM that is not there is none.
func readRecording(audio, ref, uem string) (recording, error) {
	r := recording{name: strings.TrimSuffix(filepath.Base(audio), filepath.Ext(audio)), audio: audio}
	turns, err := readRTTM(ref)
	if err != nil {
		return r, err
	}
	var names []string
	for _, t := range turns {
		if len(names) == 0 || names[len(names)-1] != t.File {
			names = append(names, t.File)
		}
	}
	if len(names) == 1 {
		r.name = names[0]
	}
	for _, t := range turns {
		if t.File == r.name {
			r.ref = append(r.ref, t)
		}
	}
	if len(r.ref) == 0 {
		return r, &hinted{fmt.Errorf("%s holds no turn of %s", ref, r.name),
			"the second field of its lines must be the audio's name without ending"}
	}
	if uem == "" {
		return r, nil
	}
	regions, err := readUEM(uem)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	for _, u := range regions {
		if u.File == r.name {
			r.uem = append(r.uem, u)
		}
	}
	if r.uem == nil {
		return r, fmt.Errorf("%s holds no region of %s", uem, r.name)
	}
	return r, nil
}
