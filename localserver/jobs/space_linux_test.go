package jobs

import (
	"log/slog"
	"strings"
	"testing"

	"hubbub/localserver/store"
	"hubbub/protocol/testkit"
)

// TestNoSpace: the audio of a job leaves the space on the disk that streams need.
func TestNoSpace(t *testing.T) {
	disk := testkit.SmallDisk(t, "16m")
	t.Parallel()
	s := openStore(t)
	put(t, s, "a", "large", silence(15<<19)) // 15 MiB, of which an eighth of the disk remains free
	put(t, s, "a", "small", silence(16000))
	start(t, Options{Store: s, Workers: 1, Dir: disk, Logger: slog.New(slog.DiscardHandler)})
	if j := over(t, s, "a", submit(t, s, newJob("a", "large"))); j.Status != store.JobFailed || !strings.Contains(j.Error, "no space for the audio") || j.Attempts != 1 {
		t.Errorf("%+v", j)
	}
	if j := over(t, s, "a", submit(t, s, newJob("a", "small"))); j.Status != store.JobSucceeded {
		t.Errorf("%+v", j)
	}
}
