package jobs

import (
	"testing"

	"hubbub/localserver/engine/offline"
	"hubbub/protocol"
)

// A number of speakers that was not found is a warning, and silence another one.
func TestWarningOfSpeakers(t *testing.T) {
	t.Parallel()
	for found, want := range map[int]string{0: "No speech was found.", 2: "Only 2 of 3 speakers could be told apart.", 3: ""} {
		if got := diarization(&offline.Result{Speakers: found}, protocol.JobRequest{NumSpeakers: 3}).Warning; got != want {
			t.Errorf("%d speakers: warning %q, want %q", found, got, want)
		}
	}
}
