package tui

import (
	"math"
	"strings"
	"testing"

	"hubbub/protocol"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

// TestNobodySpeaksWithoutAStream: a turn that is open when the stream is lost says nothing of what follows.
func TestNobodySpeaksWithoutAStream(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	s.Conn, s.Dropped = display.Reconnecting, 7
	s.Timeline.Lanes[1].Open, s.Timeline.Lanes[1].OpenSince = true, 58
	m := testModel(s, 80, 24)
	screenHasNot(t, m, "● SPEAKER")
	screenHas(t, m, "          reconnecting\n", "f")
	screenHas(t, m, " 7 dropped ")
	screenHasNot(t, m, "▀▀▀")
	screenHas(t, m, "across", "esc")
}

// TestBookmarkOfThePresenter: it is set at the present, wherever the timeline is.
func TestBookmarkOfThePresenter(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 80, 24)
	press(m, "home", "space", "f")
	m.later(tuitest.State(tuitest.FourSpeakers, 130, 1))
	screenHas(t, m, "bookmark 2:10, note:", "b")
}

// TestPresenterGoesToATime: it shows the present, so that another time is one of the timeline, but for a replay.
func TestPresenterGoesToATime(t *testing.T) {
	for _, keys := range [][]string{{":", "1", ":", "0", "0", "enter"}, {"["}} {
		m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 100, 30)
		m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(60, "") })
		press(m, append([]string{"f"}, keys...)...)
		if w := m.window(); m.presenter || math.Abs(w.middle()-60) > 1 {
			t.Errorf("%v: the presenter view %v, the middle is %v", keys, m.presenter, w.middle())
		}
		m.o.Player = &tuitest.Player{}
		if press(m, append([]string{"f"}, keys...)...); !m.presenter {
			t.Errorf("%v: a replay closes the presenter view", keys)
		}
	}
}

// TestPresenterIsNotFrozen: it shows the present; what is frozen is seen.
func TestPresenterIsNotFrozen(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 80, 24)
	screenHas(t, m, "FROZEN", "f", "space")
}

// The number of those who have no room covers nothing of the others, whose names have bars where they are not large.
func TestPresenterCountsTheOthers(t *testing.T) {
	for h := minHeight + 2; h < 60; h++ { // at the lowest ones it is beside a name
		s := tuitest.State(tuitest.FourSpeakers, 60, 1)
		for i := range s.Timeline.Lanes {
			s.Timeline.Lanes[i].Open, s.Timeline.Lanes[i].OpenSince = true, 58
		}
		m := testModel(s, 80, h)
		press(m, "f")
		for _, row := range screenRows(m) {
			if strings.Contains(row, "and 1 more") && strings.TrimSpace(row) != "and 1 more" {
				t.Errorf("%d rows: %q", h, row)
			}
		}
		screenHas(t, m, "and 1 more")
	}
}
