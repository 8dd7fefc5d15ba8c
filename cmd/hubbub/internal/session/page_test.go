package session

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubbub/protocol"
)

// TestOnPage follows a session of each kind on its page: its turn, a name that is
// given meanwhile, and its end; of a recording also its gap.
func TestOnPage(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	for name, kind := range kinds {
		stub := newStub(true)
		d := OnPage(stub, "127.0.0.1:0").(*onPage)
		s := kind(t)
		var followed error
		gaps := `"gaps":null`
		if name == "replay" {
			gaps = `"gaps":[{"start":0.01,"end":0.02}]`
		}
		stub.onRun = func() { followed = follow(d.server.URL(), gaps, s.controls().Annotations, func() { close(stub.quit) }) }
		if err := Run(t.Context(), s, d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if followed != nil || !stub.finished {
			t.Errorf("%s: %v", name, followed)
		}
		if _, err := http.Get(d.server.URL()); err == nil {
			t.Errorf("%s: the page outlives the session", name)
		}
	}
}

// closedDisplay is a display that cannot be opened.
type closedDisplay struct {
	*stub
	notices int
}

func (d *closedDisplay) open(view) error           { return io.ErrClosedPipe }
func (d *closedDisplay) notice(string, bool) error { d.notices++; return nil }

// TestOnPageOfAClosedDisplay: a display that was not opened gets no notice, and the page is closed.
func TestOnPageOfAClosedDisplay(t *testing.T) {
	closed := &closedDisplay{stub: newStub(true)}
	d := OnPage(closed, "127.0.0.1:0").(*onPage)
	if err := d.open(replay(t)); err != io.ErrClosedPipe || closed.notices > 0 {
		t.Errorf("%v, %d notices", err, closed.notices)
	}
	if _, err := http.Get(d.server.URL()); err == nil {
		t.Error("the page is still there")
	}
}

// follow reads the events of a page until they have the turn of kinds and the gaps, names its
// speaker, and reads on until they have the name.
func follow(url, gaps string, annotations *protocol.AnnotationsStore, done func()) error {
	defer done()
	r, err := http.Get(url + "/events")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	defer time.AfterFunc(time.Minute, func() { _ = r.Body.Close() }).Stop()
	want := `"a":0.05,"b":0.1`
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		switch {
		case !strings.Contains(lines.Text(), want), !strings.Contains(lines.Text(), gaps):
		case want == `"name":"Anna"`:
			return nil
		default:
			want = `"name":"Anna"`
			if err := annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename("SPEAKER_00", "Anna") }); err != nil {
				return err
			}
		}
	}
	return errors.New("the page never has " + want)
}
