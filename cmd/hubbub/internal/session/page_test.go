package session

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// TestOnPage follows a session of each kind on its page: its turn, a name that is
// given meanwhile, and its end; of a recording also its gap.
func TestOnPage(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	for name, kind := range kinds {
		stub := newStub(true)
		d := OnPage(stub, "127.0.0.1:0").(*onPage)
		s := kind(t)
		opened, ended := make(chan struct{}), make(chan error, 1)
		stub.onRun = func() { close(opened) }
		go func() { ended <- Run(t.Context(), s, d) }()
		<-opened
		r := testkit.Must(http.Get(d.server.URL() + "/events"))(t)
		defer r.Body.Close()
		var events testkit.Buffer
		go func() { _, _ = io.Copy(&events, r.Body) }()
		has := func(text string) {
			testkit.Eventually(t, name+" has "+text, func() bool { return strings.Contains(events.String(), text) })
		}
		has(`"a":0.05,"b":0.1`)
		has(map[string]string{"live": `"gaps":null`, "watch": `"gaps":null`, "replay": `"gaps":[{"start":0.01,"end":0.02}]`}[name])
		testkit.NoError(t, s.controls().Annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename("SPEAKER_00", "Anna") }))
		has(`"name":"Anna"`)
		close(stub.quit)
		testkit.NoError(t, <-ended)
		testkit.Equal(t, stub.finished, true, name)
		if _, err := http.Get(d.server.URL()); err == nil {
			t.Errorf("%s: the page outlives the session", name)
		}
	}
}

// closedDisplay is a display that cannot be opened.
type closedDisplay struct{ *stub }

func (closedDisplay) open(view) error { return io.ErrClosedPipe }

// TestOnPageOfAClosedDisplay: a display that was not opened gets no notice, and the page is closed.
func TestOnPageOfAClosedDisplay(t *testing.T) {
	closed := closedDisplay{newStub(true)}
	d := OnPage(closed, "127.0.0.1:0").(*onPage)
	if err := d.open(replay(t)); err != io.ErrClosedPipe || len(closed.notices) > 0 {
		t.Errorf("%v, notices %q", err, closed.notices)
	}
	if _, err := http.Get(d.server.URL()); err == nil {
		t.Error("the page is still there")
	}
}
