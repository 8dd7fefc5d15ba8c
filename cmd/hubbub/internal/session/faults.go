package session

import (
	"fmt"
	"strings"
	"time"

	"hubbub/protocol"
)

// faultText is what a message of the service says is wrong, or what is wrong with the
// message; "" = nothing. It is not cleaned.
func faultText(e protocol.Event) string {
	switch {
	case e.Err != "":
		return "a message of the service cannot be read: " + e.Err
	case e.Type == protocol.TypeError:
		return "the service reports: " + e.Message
	case e.Fault != "":
		return fmt.Sprintf("wrong event: %s of %s at %.3f s: %s", strings.TrimPrefix(e.Type, "diarization_speaker_"), protocol.Label(e.Speaker), e.Timestamp, e.Fault)
	}
	return ""
}

// reportEvery is how often the same fault is reported.
const reportEvery = 10 * time.Second

// faultReports bounds the reports of a service that repeats itself with every chunk.
type faultReports struct {
	last string
	at   time.Time
}

// due reports whether the fault of a message is to be reported. Messages that cannot be
// read are one fault.
func (f *faultReports) due(e protocol.Event) bool {
	kind := "unreadable"
	if e.Err == "" {
		kind = "error " + e.Message
	}
	if faultText(e) == "" || kind == f.last && time.Since(f.at) < reportEvery {
		return false
	}
	f.last, f.at = kind, time.Now()
	return true
}

// faultNotices say at the end how many messages had a fault or could not be shown. A single one
// that was reported needs no count.
func faultNotices(c protocol.Counts) (out []string) {
	for _, count := range []struct {
		n, reported int64
		text        string
	}{
		{c.Errors, 1, "errors that the service reported: %d"},
		{c.Malformed, 1, "messages of the service that could not be read: %d"},
		{c.Degenerate, 0, "events that contradict others or have an impossible time: %d"},
		{c.Unended, 0, "turns whose end did not arrive: %d"},
		{c.Refused, 0, fmt.Sprintf("events that are not shown, because a session has at most %d labels and %d turns: %%d", protocol.MaxLabels, protocol.MaxTurns)},
	} {
		if count.n > count.reported {
			out = append(out, fmt.Sprintf(count.text, count.n))
		}
	}
	return out
}
