package main

import (
	"encoding/gob"
	"os"
	"path/filepath"
	"testing"

	"hubbub/protocol/testkit"
)

// TestSecondPass scores the second pass, from audio and from the stored output of the
// networks, which needs no audio.
func TestSecondPass(t *testing.T) {
	dir, stored := makeSet(t), filepath.Join(t.TempDir(), "windows")
	measure := func(args ...string) figures {
		t.Helper()
		f := tables(t, append([]string{"--dir", dir, "--offline"}, args...)...)[0].Sets[0]
		f.RTF, f.EachRecording = 0, nil
		return f
	}
	want := measure()
	if want.DER > 0.3 || want.Labels != 1 || want.CountExact != 1 || want.CountWithin1 != 1 || want.Seconds != 12 {
		t.Errorf("%+v", want)
	}
	first := measure("--windows", stored)
	set := filepath.Join(dir, "real-dev")
	testkit.NoError(t, os.WriteFile(filepath.Join(set, "talk.wav"), nil, 0o600))
	again := measure("--windows", stored)
	for name, got := range map[string]figures{"with new windows": first, "with stored windows": again} {
		if got.DER != want.DER || got.Labels != want.Labels || got.Seconds != want.Seconds {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	// A recording of the same name in another folder is another one.
	testkit.NoError(t, os.CopyFS(filepath.Join(dir, "far"), os.DirFS(set)))
	if _, err := eval(t, "--dir", dir, "--sets", "far", "--offline", "--windows", stored); err == nil {
		t.Error("stored windows were taken for those of another set")
	}
	// Windows of audio at another level, or of the second pass, are not those of a
	// stream.
	if _, err := eval(t, "--dir", dir, "--offline", "--windows", stored, "--gain", "6"); err == nil {
		t.Error("stored windows were taken for those of amplified audio")
	}
	if _, err := eval(t, "--dir", dir, "--windows", stored, "--set", "NewSpeakerThreshold=0.6"); err == nil {
		t.Error("stored windows of the second pass were taken for a stream")
	}
	// Nor are those of an earlier format, which gob decodes as far as names agree.
	file := testkit.Must(os.Create(stored))(t)
	testkit.NoError(t, gob.NewEncoder(file).Encode(struct{ Recording, Of string }{filepath.Join(set, "talk.wav"), (&evaluator{settings: settings{offline: true}}).networks()}))
	testkit.NoError(t, file.Close())
	if _, err := eval(t, "--dir", dir, "--offline", "--windows", stored); err == nil {
		t.Error("a record of an earlier format was taken for windows")
	}
}
