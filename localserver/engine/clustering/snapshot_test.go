package clustering

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestSnapshotKnows fails when a field comes along of which nobody has said
// whether a later stream needs it: add it to AppendSnapshot and Restore, or say
// here why not.
func TestSnapshotKnows(t *testing.T) {
	known := map[string]string{
		"Clusterer.p":          "the same for every stream",
		"Clusterer.max":        "given anew",
		"Clusterer.voices":     "kept",
		"Clusterer.belief":     "of frames that are not committed",
		"Clusterer.memory":     "kept",
		"Clusterer.asked":      "asked again",
		"Clusterer.candidates": "of the window at hand",
		"Clusterer.earlier":    "of the window before",
		"Clusterer.pieces":     "of the window at hand",
		"Clusterer.alike":      "of the window at hand",
		"Clusterer.groups":     "of the window at hand",
		"Clusterer.worth":      "of the window at hand",
		"Clusterer.who":        "of the window at hand",
		"Clusterer.shares":     "of the window at hand",
		"voice.sum":            "kept",
		"voice.weight":         "kept",
		"voice.centre":         "follows from sum",
		"voice.self":           "kept",
		"memory.items":         "kept",
		"memory.until":         "on the clock of the stream",
		"memory.settled":       "false, and the next window finds out",
		"memory.side":          "space",
		"item.embedding":       "kept",
		"item.weight":          "kept",
		"item.voice":           "kept",
		"item.at":              "before the stream",
		"item.link":            "kept",
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Clusterer](), reflect.TypeFor[voice](), reflect.TypeFor[memory](), reflect.TypeFor[item]()} {
		for i := range typ.NumField() {
			name := typ.Name() + "." + typ.Field(i).Name
			if known[name] == "" {
				t.Errorf("the snapshot of voices does not know %s", name)
			}
			delete(known, name)
		}
	}
	for name := range known {
		t.Errorf("%s is gone: take it out of the snapshot and of this list", name)
	}
}

func someone(random *rand.Rand) (e Embedding) {
	var norm float64
	for k := range e {
		e[k] = float32(random.NormFloat64())
		norm += float64(e[k]) * float64(e[k])
	}
	for k := range e {
		e[k] /= float32(math.Sqrt(norm))
	}
	return e
}

// full is a clusterer that has heard as much as it can remember.
func full(random *rand.Rand) *Clusterer {
	c := New(Default(), MaxVoices)
	for v := range MaxVoices {
		e := someone(random)
		c.voices = append(c.voices, voice{self: 0.5})
		c.voices[v].add(&e, 10*random.Float64())
		c.voices[v].scale()
	}
	for i := range memoryMost {
		c.memory.items = append(c.memory.items, item{someone(random), random.Float64(), i%(MaxVoices+1) - 1, i, link(i%3 - 1)})
	}
	return c
}

func TestSnapshotGivesTheSameVoices(t *testing.T) {
	c := full(rand.New(rand.NewPCG(1, 2)))
	snapshot := c.AppendSnapshot(nil)
	if len(snapshot) > 170<<10 {
		t.Errorf("a full snapshot has %d bytes", len(snapshot))
	}
	again := New(Default(), MaxVoices)
	if err := again.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	if len(again.voices) != MaxVoices || len(again.memory.items) != memoryMost {
		t.Fatalf("%d voices and %d pieces are back", len(again.voices), len(again.memory.items))
	}
	for i := range c.voices {
		a, b := &c.voices[i], &again.voices[i]
		if d := 1 - a.centre.Dot(&b.centre); math.Abs(d) > 1e-5 || a.weight != b.weight || a.self != b.self {
			t.Errorf("voice %d: %g away, weight %g for %g, self %g for %g", i, d, b.weight, a.weight, b.self, a.self)
		}
	}
	for i := range c.memory.items {
		a, b := &c.memory.items[i], &again.memory.items[i]
		if d := 1 - a.embedding.Dot(&b.embedding); math.Abs(d) > 1e-5 || math.Abs(a.weight-b.weight) > 1e-6 || a.voice != b.voice || a.link != b.link || b.at >= 0 {
			t.Fatalf("piece %d: %g away, weight %g for %g, voice %d for %d, at %d", i, d, b.weight, a.weight, b.voice, a.voice, b.at)
		}
	}
	few := New(Default(), 3)
	if err := few.Restore(snapshot); !errors.Is(err, ErrTooManyVoices) || few.Voices() != 0 {
		t.Errorf("eight voices for three: %v", err)
	}
}

func FuzzRestore(f *testing.F) {
	c := full(rand.New(rand.NewPCG(3, 4)))
	c.voices, c.memory.items = c.voices[:2], c.memory.items[:0]
	f.Add(c.AppendSnapshot(nil))
	c.memory.items = append(c.memory.items, item{c.voices[0].centre, 1, 1, 0, goesOn})
	f.Add(c.AppendSnapshot(nil))
	f.Add([]byte{0, 0, 0})
	f.Fuzz(func(t *testing.T, snapshot []byte) {
		c := New(Default(), MaxVoices)
		if c.Restore(snapshot) != nil {
			if c.Voices() != 0 || len(c.memory.items) != 0 {
				t.Fatal("something of a bad snapshot stays")
			}
			return
		}
		for i := range c.voices {
			for _, x := range c.voices[i].centre {
				if x != x || math.IsInf(float64(x), 0) {
					t.Fatal("a centre is not finite")
				}
			}
		}
		c.memory.reconsider(c.voices, &c.p)
		if again := New(Default(), MaxVoices); again.Restore(c.AppendSnapshot(nil)) != nil {
			t.Fatal("what was restored does not go into a snapshot")
		}
	})
}
