package session

import (
	"cmp"
	"path/filepath"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/page"
	"hubbub/protocol"
	"hubbub/tui/display"
)

// onPage is a display that shows the session on a page for an audience, too.
type onPage struct {
	Display
	address string
	server  *page.Server
}

// OnPage adds a page at an address of page.ParseAddress to a display; "" = none.
func OnPage(d Display, address string) Display {
	if address == "" {
		return d
	}
	return &onPage{Display: d, address: address}
}

func (p *onPage) open(v view) (err error) {
	if p.server, err = page.Listen(p.address, (&pageView{view: v, lanes: []page.Speaker{}}).state); err != nil {
		return err
	}
	if err = p.Display.open(pagedView{v, p.server.URL()}); err == nil {
		err = p.Display.notice("the page is at "+p.server.URL(), false)
	}
	if err != nil {
		err = cmp.Or(p.server.Close(), err)
	}
	return err
}

func (p *onPage) finish() error {
	err := p.server.Close()
	return cmp.Or(p.Display.finish(), err)
}

// pagedView is a session whose state has the address of its page.
type pagedView struct {
	view
	url string
}

func (v pagedView) state() display.State {
	st := v.view.state()
	st.Page = v.url
	return st
}

// pageView is a session as its page shows it. The lock of the page guards it.
type pageView struct {
	view
	// What lanes and turns were made from: a revision of the annotations, and a timeline.
	revision int64
	timeline protocol.Snapshot
	lanes    []page.Speaker
	turns    []page.Turn
}

func (v *pageView) state() page.State {
	st := v.view.state()
	annotations, revision := v.controls().Annotations.Load()
	if v.revision != revision || !display.EqualTurns(v.timeline, st.Timeline) {
		v.lanes, v.turns = page.Speakers(annotations.Speakers(st.Timeline))
		v.revision, v.timeline = revision, st.Timeline
	}
	title := st.Source
	if v.about().Kind == capture.File {
		title = filepath.Base(title)
	}
	out := page.State{Title: display.TerminalSafe(title), Now: st.DecidedUntil(), Rate: 1, Speakers: v.lanes, Turns: v.turns}
	for _, g := range st.Gaps {
		if g.End > out.Now-page.Shown {
			out.Gaps = append(out.Gaps, g)
		}
	}
	switch {
	case st.Finished():
		out.Rate, out.Status = 0, "ended"
	case st.Playback != nil && st.Playback.Paused:
		out.Rate, out.Status = 0, "paused"
	case st.Playback != nil:
		out.Rate = st.Playback.Speed
	case st.Conn == display.Connecting || st.Conn == display.Reconnecting:
		out.Rate, out.Status = 0, st.Conn.String()
	}
	return out
}
