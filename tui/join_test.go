package tui

import (
	"strings"
	"testing"

	"hubbub/protocol"
)

// One key joins a label that came with a new connection.
func TestJoinFresh(t *testing.T) {
	store := protocol.NewAnnotationsStore(protocol.Annotations{})
	line := protocol.NewTimeline()
	at := 0.0
	for _, label := range []string{"SPEAKER_00", "SPEAKER_01", "SPEAKER_01#2", "SPEAKER_00#2"} {
		line.Apply(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, at, label))
		line.Apply(protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, at+2, label))
		at += 2
	}
	s := State{Timeline: line.Snapshot(), Heard: at, Sent: at, Link: Open}
	m := newModel(t.Context(), Options{Snapshot: func() State { return s }, Annotations: store}, newTheme(0, true, false), glyphsFor(false, false))
	m.w, m.h = 110, 30
	m.refresh()
	press(m, "J")
	if m.pick != nil || !strings.Contains(m.notice, "no label of a new connection") {
		t.Errorf("J with nothing to join: %q", m.notice)
	}
	s.Fresh = []string{"SPEAKER_01#2", "SPEAKER_00#2"}
	m.refresh()
	press(m, "J")
	if m.pick == nil || m.selected != "SPEAKER_01" {
		t.Fatalf("J proposes %q", m.selected)
	}
	if text := m.pick.prompt("SPEAKER_01"); text != "SPEAKER_01#2 came after the reconnection: is it SPEAKER_01?" {
		t.Errorf("J asks %q", text)
	}
	press(m, "enter")
	a, _ := store.Load()
	if a.Root("SPEAKER_01#2") != "SPEAKER_01" {
		t.Errorf("merges %v", a.Merges())
	}
	// The other one is somebody new.
	press(m, "J", "3")
	a, _ = store.Load()
	if m.pick != nil || a.Root("SPEAKER_00#2") != "SPEAKER_00#2" || !strings.Contains(m.notice, "person of its own") {
		t.Errorf("merges %v, notice %q", a.Merges(), m.notice)
	}
	press(m, "J")
	if m.pick != nil {
		t.Error("J asks again")
	}
	press(m, "u")
	if a, _ = store.Load(); a.Root("SPEAKER_01#2") != "SPEAKER_01#2" {
		t.Error("u does not undo")
	}
}
