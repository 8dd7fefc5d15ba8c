package client

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/recovered"
	"hubbub/protocol/testkit"
)

// resumedService has the streams first and second; statuses has the status of the n-th
// request for the status of first, or the code of an error.
func resumedService(t *testing.T, statuses func(n int) string, first, second func(*websocket.Conn)) *Client {
	t.Helper()
	var mu sync.Mutex
	asked := 0
	address, ca := protocoltest.ServeTLS(t, protocoltest.Service{
		Status: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.PathValue("id") {
			case "unopened":
				fmt.Fprint(w, `{"id":"unopened","status":"error","resumable":true,"input":{"resume":"first","resumeAt":3}}`)
				return
			case "second":
				fmt.Fprint(w, `{"id":"second","status":"running","input":{"resume":"first","resumeAt":4}}`)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			status := statuses(asked)
			asked++
			if code, err := strconv.Atoi(status); err == nil {
				w.WriteHeader(code)
				return
			}
			fmt.Fprintf(w, `{"id":"first","status":"error"%s}`, status)
		},
		Watch: func(w http.ResponseWriter, r *http.Request) {
			if conn := protocoltest.Upgrade(w, r); conn != nil {
				defer conn.Close()
				map[string]func(*websocket.Conn){"first": first, "second": second, "unopened": closes(websocket.CloseNormalClosure, "error: the handshake failed")}[r.PathValue("id")](conn)
			}
		}}.Handler(), nil)
	c := newTestClient(t, Options{BaseURL: address, CACert: ca})
	c.config.backOff = backOffOf(time.Millisecond)
	return c
}

// watchAll returns everything that a watcher of first delivers, and its end.
func watchAll(t *testing.T, c *Client, limit time.Duration) (all []string, end CloseInfo) {
	t.Helper()
	w := testkit.Must(c.Watch(t.Context(), "first", limit, false))(t)
	defer w.Close()
	for u := range w.Updates() {
		switch {
		case u.Change != nil && u.Change.Lost != nil:
			all = append(all, "lost")
		case u.Change != nil:
			all = append(all, fmt.Sprintf("continues %v %v", u.Change.Resumed, u.Change.Gap))
		default:
			if s := u.Event.State; s != nil {
				all = append(all, fmt.Sprintf("state %g", s.Timestamp))
			} else {
				all = append(all, fmt.Sprintf("%s %s %g", u.Event.Type[len("diarization_speaker_"):], u.Event.Speaker, u.Event.Timestamp))
			}
		}
	}
	return all, w.Wait()
}

func event(typ string, at float64, speaker string) string {
	return string(protocol.NewSpeakerEvent("diarization_speaker_"+typ, at, speaker).Raw)
}

func state(at float64) string {
	return string(protocol.NewStreamStateEvent(protocol.StreamState{Status: protocol.StatusRunning, Timestamp: at}).Raw)
}

// A watcher follows its sender to the stream that resumes the lost one, also if the service
// does not respond at first because it restarts: one clock, and of what both have decided,
// the first counts.
func TestWatcherFollows(t *testing.T) {
	c := resumedService(t, func(n int) string {
		if n < 2 {
			return "503"
		}
		if n < 5 {
			return `,"resumable":true`
		}
		return `,"resumedBy":"second"`
	}, closes(websocket.CloseNormalClosure, "error: connection lost", event("start", 1, "A"), state(5.5), event("end", 5.5, "A")),
		closes(websocket.CloseNormalClosure, "done", event("start", 0.5, "A"), event("end", 1.2, "A"), event("start", 1.3, "B"), state(10), event("end", 11, "B"), event("start", 12, "A"), event("end", 13, "A")))
	got, end := watchAll(t, c, time.Minute)
	want := []string{"start A 1", "state 5.5", "end A 5.5", "lost", "continues true {5.5 5.5}",
		"start B 5.5", "state 14", "end B 15", "start A 16", "end A 17"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if end.Text != protocol.StatusDone || end.Err != nil {
		t.Errorf("%+v", end)
	}
}

// A sender whose handshake was lost on its way resumes the same stream once more. The watcher that had followed to the stream
// of which the sender does not know goes back.
func TestWatcherFollowsASecondAttempt(t *testing.T) {
	c := resumedService(t, func(n int) string {
		return fmt.Sprintf(`,"resumedBy":%q`, []string{"unopened", "unopened", "second"}[min(n, 2)])
	}, closes(websocket.CloseNormalClosure, "error: connection lost", event("start", 1, "A"), event("end", 2, "A"), state(2.5)),
		closes(websocket.CloseNormalClosure, "done", event("start", 0, "A"), event("end", 1, "A")))
	got, end := watchAll(t, c, time.Minute)
	if want := []string{"start A 1", "end A 2", "state 2.5", "lost", "continues true {2.5 3}", "lost", "continues true {2.5 4}", "start A 4", "end A 5"}; fmt.Sprint(got) != fmt.Sprint(want) || end.Text != "done" {
		t.Errorf("got  %v, %+v\nwant %v", got, end, want)
	}
}

// What the sender could not send is a gap. A turn that a lost stream has left open ends where that stream had decided, as it
// does for the sender: not with the newest event. Events far beyond the audio do not hide the turns of the stream that resumes,
// nor does the end of a turn that began there, where audio was lost. A watcher of the past does not wait for what the sender did
// long ago.
func TestWatcherAtTheCut(t *testing.T) {
	one, wrong := []string{event("start", 1, "A"), event("end", 2, "A")}, event("start", 3600, "C")
	for want, first := range map[string][]string{
		"start A 1, end A 2, state 2.5, lost, continues true {2.5 4}":                             append(one, state(2.5)),
		"start A 1, state 7.5, lost, end A 5, continues true {7.5 7.5}":                           {event("start", 1, "A"), state(7.5)},
		"start A 1, state 4, lost, end A 1.5, continues true {4 4}":                               {event("start", 1, "A"), state(4)},
		"start A 1, state 3, lost, end A 1.001, continues true {3 4}":                             {event("start", 1, "A"), state(3)},
		"start A 1, end A 2, start C 3600, end C 3601, state 5.5, lost, continues true {5.5 5.5}": append(one, wrong, event("end", 3601, "C"), state(5.5)),
		"start A 1, end A 2, start C 3600, state 3, lost, end C 3600.001, continues true {3 4}":   append(one, wrong, state(3)),
	} {
		c := resumedService(t, func(int) string { return `,"resumedBy":"second"` },
			closes(websocket.CloseNormalClosure, "error: connection lost", first...),
			closes(websocket.CloseNormalClosure, "done", event("start", 2, "B"), event("end", 3, "B")))
		c.config.backOff = func(n int, _ error) time.Duration {
			t.Errorf("waits for attempt %d", n)
			return 0
		}
		got, _ := watchAll(t, c, time.Minute)
		testkit.Equal(t, strings.Join(got, ", "), want+", start B 6, end B 7")
	}
}

// A service that knows of no resumption or not of the stream, a stream that nobody resumes, a
// sender that takes too long, and a stream that resumes itself: the watcher ends as the stream
// did.
func TestWatcherEndsWithoutSuccessor(t *testing.T) {
	always := func(status string) func(int) string { return func(int) string { return status } }
	for name, c := range map[string]struct {
		statuses func(int) string
		limit    time.Duration
		end      string
		lost     bool // it says that it waits for the sender
	}{
		"another service": {always(``), time.Minute, "error: connection lost", false},
		"unknown":         {always("404"), time.Minute, "error: connection lost", false},
		"nobody": {func(n int) string {
			if n < 2 {
				return `,"resumable":true`
			}
			return ``
		}, time.Minute, "error: connection lost", true},
		"too late": {always(`,"resumable":true`), 200 * time.Millisecond, "error: connection lost", true},
		"itself":   {always(`,"resumedBy":"first"`), time.Minute, "error: connection lost", false},
		"done, whatever continues with its speakers later": {always(`,"resumedBy":"second"`), time.Minute, protocol.StatusDone, false},
		"waits for nobody": {always(`,"resumable":true`), 0, "error: connection lost", false},
	} {
		client := resumedService(t, c.statuses, closes(websocket.CloseNormalClosure, c.end, event("start", 1, "A"), event("end", 2, "A")), nil)
		got, end := watchAll(t, client, c.limit)
		if slices.Contains(got, "lost") != c.lost || len(got) < 2 || end.Reason != Completed || end.Text != c.end || end.Err != nil {
			t.Errorf("%s: %v, %+v", name, got, end)
		}
	}
}

// A panic ends a watcher and its stream, not the program.
func TestPanicEndsOnlyTheWatcher(t *testing.T) {
	over := make(chan struct{})
	c := resumedService(t, nil, func(conn *websocket.Conn) {
		defer close(over)
		says(event("start", 1, "A"))(conn)
		protocoltest.Drain(conn)
	}, nil)
	stream := testkit.Must(c.openWatch(t.Context(), "first", 0, false))(t)
	w := &Watcher{streamSession: c.newStreamSession(false, time.Minute, "")}
	w.merger = nil
	w.run("watching", func() { w.follow(stream) })
	<-over
	if _, more := <-w.Updates(); more || !recovered.Caught(w.Wait().Err) {
		t.Errorf("%+v", w.Wait())
	}
}

// Close ends a watcher that waits for its sender.
func TestWatcherClosedWhileAwaiting(t *testing.T) {
	c := resumedService(t, func(int) string { return `,"resumable":true` }, closes(websocket.CloseNormalClosure, "error: connection lost"), nil)
	w := testkit.Must(c.Watch(t.Context(), "first", time.Hour, false))(t)
	for u := range w.Updates() {
		if u.Change != nil {
			break
		}
	}
	if st := w.Status(); st.Lost == nil || !st.Sender || st.Losses != 0 {
		t.Errorf("%+v", st)
	}
	w.Close()
	if end := w.Wait(); end.Reason != Cancelled {
		t.Errorf("%+v", end)
	}
}
