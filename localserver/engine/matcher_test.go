package engine

import (
	"encoding/binary"
	"testing"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/enginetest"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol/testkit"
)

// A match changes only after several windows in a row that say the same, and a
// person who is matched with one speaker is not matched with another.
func TestMatchesChange(t *testing.T) {
	m := matcher{people: []voiceprint.Person{{Label: "Sam"}, {Label: "Rosa"}}, matching: voiceprint.Matching{Threshold: 0.8}}
	for i, step := range []struct {
		sam, rosa float64
		windows   int
		want      string
	}{
		{0.9, 0.05, matchWindows - 1, ""},
		{0.9, 0.05, 1, "Sam"},
		{0.7, 0.2, 2 * matchWindows, "Sam"}, // below the threshold, but near it
		{0.1, 0.85, matchWindows - 1, "Sam"},
		{0.7, 0.2, 1, "Sam"},
		{0.1, 0.85, matchWindows - 1, "Sam"},
		{0.1, 0.85, 1, "Rosa"},
		{0.3, 0.6, matchWindows, ""},
		{0.3, 0.7, matchWindows, ""}, // withdrawn: the threshold counts again
		{0.1, 0.85, matchWindows, "Rosa"},
	} {
		m.confidences = []float64{step.sam, step.rosa}
		for range step.windows {
			m.decide(0, m.choose(0))
		}
		if m.name[0] != step.want {
			t.Fatalf("step %d: %q instead of %q", i, m.name[0], step.want)
		}
	}
	testkit.Equal(t, m.choose(1), "", "a second speaker is matched with")
	m.matching.Shared = true
	testkit.Equal(t, m.choose(1), "Rosa", "shared")
}

// A speaker that was merged into another one does not keep its person from the other.
func TestAMergedSpeakerFreesItsPerson(t *testing.T) {
	x := enginetest.Demo(t)
	v := testkit.Must(voiceprint.Make(x[int(0.9*SampleRate):int(5.84*SampleRate)]))(t)
	voice, _ := v.Embeddings()
	// A snapshot of the clusterer: 20 s of speaker 0, and speaker 1, merged.
	type record struct {
		Sum                      [clustering.Dim]float32
		Duration, SelfSimilarity float64
	}
	speakers := [2]record{{Sum: voice, Duration: 20}}
	snapshot, _ := binary.Append([]byte{2, 0, 0}, binary.LittleEndian, speakers)
	c := clustering.New(clustering.Default(), MaxSpeakers)
	testkit.NoError(t, c.Restore(snapshot))
	m := matcher{people: []voiceprint.Person{{Label: "Sam", Voiceprint: v}}, matching: voiceprint.Matching{Threshold: 0.8}}
	m.restore([MaxSpeakers]string{1: "Sam"})
	for range matchWindows {
		m.update(c, &clustering.Window{})
	}
	testkit.Equal(t, m.name[0], "Sam", "the speaker is matched with")
}
