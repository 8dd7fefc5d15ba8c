package clustering

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// TestSnapshotFields fails for a new field until it is decided whether a later
// stream needs it: add it to AppendSnapshot and Restore, or say here why not.
func TestSnapshotFields(t *testing.T) {
	known := map[string]bool{}
	for _, fields := range []string{
		// Kept.
		"Clusterer.speakers Clusterer.memory speaker.sum speaker.duration speaker.selfSimilarity memory.segments",
		"storedSegment.embedding storedSegment.duration storedSegment.speaker storedSegment.continues",
		// The same for every stream, given by New, or following from what is kept.
		"Clusterer.p Clusterer.max speaker.centroid",
		// Of the current window, the one before, or frames that are not committed.
		"Clusterer.segments Clusterer.cosines Clusterer.clusters Clusterer.scores Clusterer.assigned",
		"Clusterer.candidate Clusterer.aggregate Clusterer.multiscale",
		// On the clock of the stream; memory.converged is false, and the next window finds out.
		"memory.end storedSegment.at memory.converged",
	} {
		for name := range strings.FieldsSeq(fields) {
			known[name] = true
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Clusterer](), reflect.TypeFor[speaker](), reflect.TypeFor[memory](), reflect.TypeFor[storedSegment]()} {
		for field := range typ.Fields() {
			name := typ.Name() + "." + field.Name
			if !known[name] {
				t.Errorf("it is not decided whether a snapshot needs %s", name)
			}
			delete(known, name)
		}
	}
	for name := range known {
		t.Errorf("%s no longer exists: remove it from the snapshot and from this list", name)
	}
}

// full is a clusterer with as many speakers and stored segments as possible.
func full(random *rand.Rand) *Clusterer {
	c := New(Default(), MaxSpeakers)
	for v := range MaxSpeakers {
		e := newPerson(random).e
		c.speakers = append(c.speakers, speaker{selfSimilarity: 0.5})
		c.speakers[v].add(&e, 10*random.Float64())
		c.speakers[v].normalise()
	}
	for i := range memoryMax {
		c.memory.segments = append(c.memory.segments, storedSegment{plain(newPerson(random).e), random.Float64(), i%(MaxSpeakers+1) - 1, i, i%3 == 0})
	}
	return c
}

func TestSnapshotRestoresTheSpeakers(t *testing.T) {
	c := full(rand.New(rand.NewPCG(1, 2)))
	snapshot := c.AppendSnapshot(nil)
	if len(snapshot) > 170<<10 {
		t.Errorf("a full snapshot has %d bytes", len(snapshot))
	}
	restored := New(Default(), MaxSpeakers)
	testkit.NoError(t, restored.Restore(snapshot))
	if len(restored.speakers) != MaxSpeakers || len(restored.memory.segments) != memoryMax {
		t.Fatalf("%d speakers and %d segments are restored", len(restored.speakers), len(restored.memory.segments))
	}
	for i := range c.speakers {
		a, b := &c.speakers[i], &restored.speakers[i]
		if d := 1 - a.centroid.Dot(&b.centroid.Embedding); math.Abs(d) > 1e-5 || a.duration != b.duration || a.selfSimilarity != b.selfSimilarity {
			t.Errorf("speaker %d: distance %g, duration %g for %g, self-similarity %g for %g", i, d, b.duration, a.duration, b.selfSimilarity, a.selfSimilarity)
		}
	}
	for i := range c.memory.segments {
		a, b := &c.memory.segments[i], &restored.memory.segments[i]
		if d := 1 - a.embedding.Dot(&b.embedding.Embedding); math.Abs(d) > 1e-5 || math.Abs(a.duration-b.duration) > 1e-6 || a.speaker != b.speaker || a.continues != b.continues || b.at >= 0 {
			t.Fatalf("segment %d: distance %g, duration %g for %g, speaker %d for %d, at %d", i, d, b.duration, a.duration, b.speaker, a.speaker, b.at)
		}
	}
	few := New(Default(), 3)
	if err := few.Restore(snapshot); !errors.Is(err, ErrTooManySpeakers) || few.Speakers() != 0 {
		t.Errorf("eight speakers for three: %v", err)
	}
}

func FuzzRestore(f *testing.F) {
	c := full(rand.New(rand.NewPCG(3, 4)))
	c.speakers, c.memory.segments = c.speakers[:2], c.memory.segments[:0]
	f.Add(c.AppendSnapshot(nil))
	c.memory.segments = append(c.memory.segments, storedSegment{c.speakers[0].centroid, 1, 1, 0, true})
	f.Add(c.AppendSnapshot(nil))
	f.Add([]byte{0, 0, 0})
	f.Fuzz(func(t *testing.T, snapshot []byte) {
		c := New(Default(), MaxSpeakers)
		if c.Restore(snapshot) != nil {
			if c.Speakers() != 0 || len(c.memory.segments) != 0 {
				t.Fatal("a bad snapshot was restored in part")
			}
			return
		}
		for i := range c.speakers {
			for _, x := range c.speakers[i].centroid.Embedding {
				if x != x || math.IsInf(float64(x), 0) {
					t.Fatal("a centroid is not finite")
				}
			}
		}
		c.memory.reassign(c.speakers, &c.p)
		if again := New(Default(), MaxSpeakers); again.Restore(c.AppendSnapshot(nil)) != nil {
			t.Fatal("the snapshot of a restored clusterer is invalid")
		}
	})
}
