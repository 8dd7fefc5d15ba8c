package main

import (
	"encoding/gob"
	"os"

	"hubbub/localserver/engine/clustering"
)

// stored is what a file of --heard holds of one recording: the windows, by the
// recording's name, so that thresholds can be tuned again and again without
// running the networks.
type stored struct {
	Name    string
	Samples int
	Steps   int
	Windows map[int]*clustering.Window // by step
}

// saveHeard writes what the networks heard to a file.
func saveHeard(path string, all []heard) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	e := gob.NewEncoder(file)
	for _, h := range all {
		s := stored{h.rec.name, h.samples, len(h.windows), map[int]*clustering.Window{}}
		for i, w := range h.windows {
			if w != nil {
				s.Windows[i] = w
			}
		}
		if err := e.Encode(s); err != nil {
			return err
		}
	}
	return file.Close()
}

// loadHeard reads what an earlier run heard of the same sets; ok is false when
// the file is not there or is of other recordings.
func loadHeard(path string, sets []set) (all []heard, ok bool, err error) {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	d := gob.NewDecoder(file)
	for i, s := range sets {
		for _, r := range s.recordings {
			var got stored
			if err := d.Decode(&got); err != nil || got.Name != r.name {
				return nil, false, nil
			}
			h := heard{set: i, rec: r, samples: got.Samples, windows: make([]*clustering.Window, got.Steps)}
			for at, w := range got.Windows {
				h.windows[at] = w
			}
			all = append(all, h)
		}
	}
	return all, true, nil
}
