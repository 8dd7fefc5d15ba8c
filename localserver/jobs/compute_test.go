package jobs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"hubbub/localserver/engine/offline"
	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// A number of speakers that was not found is a warning, and silence another one.
func TestWarningOfSpeakers(t *testing.T) {
	t.Parallel()
	for found, want := range map[int]string{0: "No speech was found.", 2: "Only 2 of 3 speakers could be told apart.", 3: ""} {
		testkit.Equal(t, diarization(&offline.Result{Speakers: found}, protocol.JobRequest{NumSpeakers: 3}).Warning, want, found, "speakers: warning")
	}
}

// Audio that cannot be decoded is the end of its job. An error of the machine is not: the job runs again.
func TestErrorsOfTheMachine(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "text")
	testkit.NoError(t, os.WriteFile(text, []byte("no audio"), 0o600))
	a := &attempt{Runner: &Runner{}, ctx: context.Background()}
	for path, final := range map[string]bool{text: true, "\x00": false} {
		err := a.read(path, maxLength, 0, 1, nil)
		if _, fails := errors.AsType[*failure](a.audioError(path, err)); err == nil || fails != final {
			t.Errorf("%v: the job fails: %v", err, fails)
		}
	}
}

// A diarization is not complete when its audio is read.
func TestProgressOfADiarization(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	put(t, s, "a", "audio", silence(3*16000))
	submit(t, s, newJob("a", "audio"))
	d := testkit.Must(s.Next(t.Context(), store.RunQueue))(t)
	r := runner(t, s, 0, nil)
	a := testkit.Must(r.claim(d))(t)
	a.ctx = context.Background()
	var read int64
	r.Busy = func() bool { read = a.thousandths.Load(); return false }
	testkit.Must(a.compute())(t)
	if done := a.thousandths.Load(); read != 1000*readShare || done != 1000 {
		t.Errorf("%d of 1000 with the audio, %d at the end", read, done)
	}
}
