package clustering

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"hubbub/protocol/testkit"
)

// TestSnapshotFields fails for a new field until it is decided whether a later
// stream needs it: add it to AppendSnapshot and Restore, or say here why not.
func TestSnapshotFields(t *testing.T) {
	known := map[string]string{
		"Clusterer.p":             "the same for every stream",
		"Clusterer.max":           "given by New",
		"Clusterer.speakers":      "kept",
		"Clusterer.memory":        "kept",
		"Clusterer.aggregate":     "of frames that are not committed",
		"Clusterer.candidate":     "of the previous window",
		"Clusterer.segments":      "of the current window",
		"Clusterer.cosines":       "of the current window",
		"Clusterer.clusters":      "of the current window",
		"Clusterer.scores":        "of the current window",
		"Clusterer.assigned":      "of the current window",
		"Clusterer.multiscale":    "of the last seconds",
		"speaker.sum":             "kept",
		"speaker.duration":        "kept",
		"speaker.centroid":        "follows from sum",
		"speaker.selfSimilarity":  "kept",
		"memory.segments":         "kept",
		"memory.end":              "on the clock of the stream",
		"memory.converged":        "false; the next window finds out",
		"storedSegment.embedding": "kept",
		"storedSegment.duration":  "kept",
		"storedSegment.speaker":   "kept",
		"storedSegment.at":        "before the stream",
		"storedSegment.continues": "kept",
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Clusterer](), reflect.TypeFor[speaker](), reflect.TypeFor[memory](), reflect.TypeFor[storedSegment]()} {
		for field := range typ.Fields() {
			name := typ.Name() + "." + field.Name
			if known[name] == "" {
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
