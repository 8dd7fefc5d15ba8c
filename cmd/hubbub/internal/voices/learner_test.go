package voices

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hubbub/localserver/engine/enginetest"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// speech is the first six seconds of the demo, in which one person talks.
func speech(t *testing.T) []float32 {
	t.Helper()
	return enginetest.Demo(t)[:6*protocol.SampleRate]
}

var makeOnce = sync.OnceValues(func() (voiceprint.Voiceprint, error) { return voiceprint.Make(firstSpeech) })

var firstSpeech []float32

// madeOnce returns one voiceprint for all calls of all tests: to make one takes time.
func madeOnce(samples []float32) (voiceprint.Voiceprint, error) {
	if firstSpeech == nil {
		firstSpeech = samples
	}
	return makeOnce()
}

func names(t *testing.T, s Store) string {
	t.Helper()
	list := testkit.Must(s.List())(t)
	var out []string
	for _, v := range list {
		out = append(out, v.Name)
	}
	return strings.Join(out, " ")
}

// TestLearner learns two speakers of a session; the voices follow their names. What
// a voice has replaced comes back when it is corrected.
func TestLearner(t *testing.T) {
	store := Store{filepath.Join(t.TempDir(), "voices")}
	samples := speech(t)
	l := NewLearner(store)
	l.make = madeOnce
	var annotations protocol.Annotations
	name := func(label, name string) {
		t.Helper()
		annotations = testkit.Must(annotations.Rename(label, name))(t)
	}
	learn := func(label, name, says string) {
		t.Helper()
		if text, err := l.Learn(label, name, samples); err != nil || !strings.Contains(text, "a voiceprint of "+name+" "+says+" stored in "+store.Dir) {
			t.Fatalf("%q, %v", text, err)
		}
	}
	correct := func(want, says string) {
		t.Helper()
		text, err := l.Correct(annotations)
		if got := names(t, store); err != nil || got != want || !strings.Contains(text, says) || says == "" && text != "" {
			t.Errorf("%q is stored, want %q; %q, %v", got, want, text, err)
		}
		for _, name := range []string{"Anna", "Ben", "Eva", "Mia"} {
			testkit.Equal(t, l.Stored(name), strings.Contains(want, name), name, "is stored")
		}
	}
	earlier := NewLearner(store)
	earlier.make = l.make
	testkit.Must(earlier.Learn("SPEAKER_07", "Anna", samples))(t)
	was := testkit.Must(store.List())(t)[0]

	name("SPEAKER_00", "Anna")
	learn("SPEAKER_00", "Anna", "replaces the earlier one,")
	correct("Anna", "")
	name("SPEAKER_00", "Ben")
	correct("Anna Ben", "the voiceprint of Anna is stored as Ben now")
	testkit.Equal(t, testkit.Must(store.List())(t)[0], was, "the voice of before")
	name("SPEAKER_01", "Eva")
	learn("SPEAKER_01", "Eva", "is")
	name("SPEAKER_00", "")
	name("SPEAKER_01", "Ben")
	name("SPEAKER_00", "Eva")
	correct("Anna Ben Eva", "the voiceprint of Ben is stored as Eva now; the voiceprint of Eva is stored as Ben now")
	apart := annotations
	annotations, _ = annotations.Merge("SPEAKER_01", "SPEAKER_00")
	together := annotations
	correct("Anna Eva", "the voiceprint of Ben is no longer stored")
	annotations = apart
	correct("Anna Ben Eva", "the voiceprint of Ben is stored again") // the merge was undone
	annotations = together
	name("SPEAKER_00", "Mia")
	correct("Anna Mia", "the voiceprint of Eva is stored as Mia now; the voiceprint of Ben is no longer stored")
	name("SPEAKER_00", "Speaker_1") // which no voice can have
	correct("Anna", "the voiceprint of Mia is no longer stored")
	name("SPEAKER_00", "")
	correct("Anna", "")
	name("SPEAKER_00", "Eva") // which is no undoing
	correct("Anna", "")
	learn("SPEAKER_00", "Eva", "is")
	testkit.NoError(t, store.Remove("Eva")) // by another process
	name("SPEAKER_00", "Mia")
	correct("Anna", "")
	// A speaker whose voice is no longer stored may have others merged into it.
	name("SPEAKER_02", "Eva")
	learn("SPEAKER_02", "Eva", "is")
	name("SPEAKER_02", "")
	correct("Anna", "the voiceprint of Eva is no longer stored")
	name("SPEAKER_03", "Ben")
	learn("SPEAKER_03", "Ben", "is")
	annotations, _ = annotations.Merge("SPEAKER_03", "SPEAKER_02")
	correct("Anna Ben", "")
	// What a voice has replaced does not come back if another process has removed that voice.
	learn("SPEAKER_04", "Anna", "replaces the earlier one,")
	testkit.NoError(t, store.Remove("Anna"))
	learn("SPEAKER_04", "Anna", "is")
	correct("Ben", "the voiceprint of Anna is no longer stored")
}

// TestLearnerOfOneName learns two labels under one name, one after the other: each is corrected without the other.
func TestLearnerOfOneName(t *testing.T) {
	for _, c := range []struct{ first, second, want string }{
		{"Ben", "Anna", "Anna Ben"}, {"Anna", "Ben", "Anna Ben"}, {"Ben", "Eva", "Ben Eva"},
	} {
		store := Store{filepath.Join(t.TempDir(), "voices")}
		l := NewLearner(store)
		l.make = madeOnce
		var annotations protocol.Annotations
		for label, name := range map[string]string{"SPEAKER_00": c.first, "SPEAKER_01": c.second} {
			annotations = testkit.Must(annotations.Rename(label, name))(t)
		}
		for _, label := range []string{"SPEAKER_00", "SPEAKER_01"} {
			testkit.Must(l.Learn(label, "Anna", speech(t)))(t)
		}
		testkit.Must(l.Correct(annotations))(t)
		testkit.Equal(t, names(t, store), c.want, c.first, c.second)
	}
}

// TestLearnerRefuses stores nothing of speech that is too short, nor under a name that
// no voice can have.
func TestLearnerRefuses(t *testing.T) {
	store := Store{filepath.Join(t.TempDir(), "voices")}
	l := NewLearner(store)
	for name, samples := range map[string][]float32{"Anna": make([]float32, 16000), "speaker_1": speech(t)} {
		if _, err := l.Learn("SPEAKER_00", name, samples); err == nil || hint.Of(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	testkit.Equal(t, names(t, store), "", "is stored")
}

// TestLearnerOfAFullStore: a voice that could not be stored is not tried again, and one that could not be
// replaced stays.
func TestLearnerOfAFullStore(t *testing.T) {
	var stored []string
	for i := range protocol.MaxVoiceprints {
		stored = append(stored, fmt.Sprint("Anna ", i))
	}
	store, _ := filled(t, stored...)
	l := NewLearner(store)
	l.make = madeOnce
	if _, err := l.Learn("SPEAKER_00", "Ben", speech(t)); err == nil {
		t.Error("one too many is stored")
	}
	annotations := testkit.Must(protocol.Annotations{}.Rename("SPEAKER_00", "Eva"))(t)
	if text, err := l.Correct(annotations); text != "" || err != nil || l.Stored("Eva") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestLearnerAgain: when a voice that is learnt again cannot be stored, the earlier one stays.
func TestLearnerAgain(t *testing.T) {
	store, _ := filled(t)
	l := NewLearner(store)
	l.make = madeOnce
	testkit.Must(l.Learn("SPEAKER_00", "Ben", speech(t)))(t)
	l.make = func([]float32) (voiceprint.Voiceprint, error) { return voiceprint.Voiceprint{}, nil }
	if _, err := l.Learn("SPEAKER_00", "Ben", speech(t)); err == nil {
		t.Error("a voiceprint that is none is stored")
	}
	annotations := testkit.Must(protocol.Annotations{}.Rename("SPEAKER_00", "Ben"))(t)
	text := testkit.Must(l.Correct(annotations))(t)
	testkit.Equal(t, text+names(t, store), "Ben", "is stored")
}

// TestNever is remembered until its file is deleted.
func TestNever(t *testing.T) {
	store := Store{filepath.Join(t.TempDir(), "voices")}
	l := NewLearner(store)
	if !l.Asks() {
		t.Error("it does not ask at first")
	}
	if err := l.Never(); err != nil || l.Asks() || NewLearner(store).Asks() || names(t, store) != "" {
		t.Errorf("it asks again, %v", err)
	}
	if err := os.Remove(filepath.Join(store.Dir, neverFile)); err != nil || !NewLearner(store).Asks() {
		t.Errorf("it does not ask again, %v", err)
	}
}
