package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"hubbub/capture"
	"hubbub/localserver/engine"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// Meetings of enrolled people, as localserver/engine/training/enrolment.py makes
// them: DIR/meetings and DIR/people, or other folders of the same names in other
// recording conditions, and DIR/enrolled.json.

// enrolment is a set of such meetings, with the output of the networks.
type enrolment struct {
	enrolled map[string]map[string][]string // names by meeting and number of enrolled people
	people   map[string]voiceprint.Voiceprint
	sets     []set // meetings by recording condition
	meetings []windows
}

func (ev *evaluator) readEnrolment(ctx context.Context) (*enrolment, error) {
	e := &enrolment{}
	raw, err := os.ReadFile(filepath.Join(ev.enrolment, "enrolled.json"))
	if err == nil {
		err = json.Unmarshal(raw, &e.enrolled)
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("the set of enrolled people cannot be read: %w", err), "make it with localserver/engine/training/enrolment.py")
	}
	folders, people := ev.meetings, cmp.Or(ev.people, filepath.Join(ev.enrolment, "people"))
	if len(folders) == 0 {
		folders = []string{filepath.Join(ev.enrolment, "meetings")}
	}
	for _, folder := range folders {
		sets, err := findSets(filepath.Dir(folder), []string{filepath.Base(folder)}, true)
		if err != nil {
			return nil, err
		}
		e.sets = append(e.sets, sets...)
	}
	if e.meetings, err = ev.runNetworks(ctx, e.sets); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, sizes := range e.enrolled {
		for _, list := range sizes {
			for _, name := range list {
				names[name] = true
			}
		}
	}
	if e.people, err = makeVoiceprints(ctx, people, slices.Sorted(maps.Keys(names))); err != nil {
		return nil, err
	}
	return e, nil
}

// makeVoiceprints makes the voiceprints of people from the files of a folder. Who is
// refused has none.
func makeVoiceprints(ctx context.Context, folder string, names []string) (map[string]voiceprint.Voiceprint, error) {
	people := map[string]voiceprint.Voiceprint{}
	for _, name := range names {
		samples, err := capture.Decode(ctx, capture.Spec{Input: filepath.Join(folder, name+".wav")})
		if err != nil {
			return nil, err
		}
		v, err := voiceprint.Make(samples)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			continue
		}
		people[name] = v
	}
	return people, nil
}

// of are the people who are enrolled for a meeting, of a number of people.
func (e *enrolment) of(meeting, size string) (people []voiceprint.Person) {
	for _, name := range e.enrolled[meeting][size] {
		if v, ok := e.people[name]; ok {
			people = append(people, voiceprint.Person{Label: name, Voiceprint: v})
		}
	}
	return people
}

// measureEnrolment measures the names of such a set and the reliability of the
// confidences, or with --calibrate learns from it.
func (ev *evaluator) measureEnrolment(ctx context.Context, out io.Writer) error {
	var earlier namesTable
	var err error
	if ev.against != "" {
		if earlier, err = readEarlier[namesTable](ev.against); err != nil {
			return err
		}
	}
	e, err := ev.readEnrolment(ctx)
	switch {
	case err != nil:
		return err
	case ev.calibrate:
		return e.calibrate(out)
	}
	rows, err := ev.measureNames(ctx, e)
	switch {
	case err != nil:
		return err
	case ev.json:
		return protocol.WriteJSON(out, namesTable{engine.Version(), engine.WeightsVersion(), rows})
	}
	if err := writeNames(out, rows); err != nil {
		return err
	}
	if ev.against != "" {
		if err := writeNamesAgainst(out, rows, earlier); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	return reliability(out, e.comparisons(), voiceprint.DefaultCalibration())
}
