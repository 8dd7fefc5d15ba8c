package client

import (
	"fmt"
	"maps"
	"slices"

	"hubbub/protocol"
)

// eventMerger merges the events of several streams into those of one session: on
// one clock, each turn once, and no label for two people.
//
// Each stream decides from its cut on; what lies before was decided by the
// stream before it. Audio from shortly before the cut is retransmitted, so that
// the engine has context at the cut; events about that audio are clipped.
type eventMerger struct {
	streams    int                       // so far; the events of the first one pass unchanged
	notResumed int                       // streams that do not continue the labels before them
	cut        float64                   // where the current stream begins, in seconds
	last       float64                   // the newest timestamp returned
	labels     map[string]string         // of the current stream, to ours
	used       map[string]bool           // all of ours
	newLabels  []string                  // first used by a stream that was not resumed
	open       map[string]protocol.Event // the starts of the open turns
	early      []protocol.Event          // starts before the cut, of turns that may end before it
	carried    []string                  // labels whose turn had only just begun at the cut
	moved      map[turnStart]float64     // where turns of the current stream begin in the session, if elsewhere
}

// turnStart is the start of a turn of the current stream, with our label.
type turnStart struct {
	label string
	at    float64
}

const (
	// minTurn is the length of a turn, in seconds, that services report. A loss does
	// not end a shorter one: it stays open, for the new stream to continue.
	minTurn = 0.2
	// joinWithin is how far behind the cut the new stream may begin that turn.
	joinWithin = 0.5
	// maxUsed bounds the labels of a session, for a service that misbehaves. A timeline takes
	// fewer.
	maxUsed = 4 * protocol.MaxLabels
)

func newEventMerger() *eventMerger {
	return &eventMerger{streams: 1, labels: map[string]string{}, used: map[string]bool{}, open: map[string]protocol.Event{}}
}

// nextStream begins a new stream, which decides from cut on. resumed says that
// it continues the labels of the one before.
func (m *eventMerger) nextStream(cut float64, resumed bool) (out []protocol.Event) {
	if !resumed || cut > m.cut {
		out = m.abandon()
	}
	m.streams++
	m.cut = max(cut, min(m.last, protocol.Round1ms(cut+0.001))) // an abandoned turn may end a millisecond later, a wrong one anywhere
	m.early, m.moved = nil, map[turnStart]float64{}
	if !resumed {
		m.notResumed++
		m.labels = map[string]string{}
	}
	return out
}

// abandon ends the turns that no new stream continues.
func (m *eventMerger) abandon() (out []protocol.Event) {
	for _, label := range m.carried {
		if start, ok := m.open[label]; ok {
			out = append(out, m.endTurn(label, max(m.cut, m.last, start.Timestamp+0.001)))
		}
	}
	m.carried = nil
	return out
}

func (m *eventMerger) endTurn(label string, at float64) protocol.Event {
	e := protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, at, label)
	m.note(e)
	return e
}

// add merges an event of the current stream. Events come in order of their
// timestamps: one beyond the cut shows that everything before it is decided.
func (m *eventMerger) add(e protocol.Event) (out []protocol.Event) {
	if e.Err == "" && e.Type == protocol.TypeText && m.streams > 1 {
		e.Transcript.Speaker = m.label(e.Transcript.Speaker)
		if at, ok := m.moved[turnStart{e.Transcript.Speaker, e.Transcript.Start}]; ok {
			e.Transcript.Start = at
		}
		e.Raw = protocol.NewTextEvent(e.Transcript).Raw
	}
	if !e.IsTurn() {
		return append(out, e)
	}
	if m.streams > 1 {
		e.Speaker = m.label(e.Speaker)
		sameSpeaker := func(early protocol.Event) bool { return early.Speaker == e.Speaker }
		switch {
		case e.Type == protocol.TypeSpeakerStart && e.Timestamp < m.cut:
			if i := slices.IndexFunc(m.early, sameSpeaker); i >= 0 {
				m.early[i] = e
			} else if len(m.early) < protocol.MaxLabels {
				m.early = append(m.early, e)
			}
			return nil
		case e.Type == protocol.TypeSpeakerEnd && e.Timestamp <= m.cut:
			m.early = slices.DeleteFunc(m.early, sameSpeaker)
			return nil
		}
		if e.Fault == "" {
			out = m.advance(e.Timestamp)
		}
		if i := slices.Index(m.carried, e.Speaker); i >= 0 && e.Type == protocol.TypeSpeakerStart {
			m.continueTurn(i, e)
			return out
		}
		e = e.Moved(e.Timestamp, e.Speaker)
	} else if len(m.used) < maxUsed {
		m.used[protocol.Label(e.Speaker)] = true
	}
	m.note(e)
	return append(out, e)
}

// advance says that the current stream has decided up to a time. It returns the
// turns that cross the cut, and ends those that were carried and do not continue.
func (m *eventMerger) advance(decided float64) (out []protocol.Event) {
	if decided <= m.cut {
		return nil
	}
	for _, e := range m.early {
		if i := slices.Index(m.carried, e.Speaker); i >= 0 {
			m.continueTurn(i, e)
			continue
		}
		out = append(out, m.move(e, m.cut))
		m.note(out[len(out)-1])
	}
	m.early = nil
	if decided > m.cut+joinWithin {
		out = append(out, m.abandon()...)
	}
	return out
}

// continueTurn continues a carried turn, by its index, with a start of the new stream. Another
// match, of the few turns that are so short, is seen with the speaker's next turn.
func (m *eventMerger) continueTurn(i int, e protocol.Event) {
	m.carried = slices.Delete(m.carried, i, i+1)
	m.move(e, m.open[e.Speaker].Timestamp)
}

// move is a start at another time. The text of its turn will follow it.
func (m *eventMerger) move(e protocol.Event, at float64) protocol.Event {
	moved := e.Moved(at, e.Speaker)
	if len(m.moved) < protocol.MaxLabels { // beyond, a misbehaving service
		m.moved[turnStart{e.Speaker, protocol.Round1ms(e.Timestamp)}] = moved.Timestamp
	}
	return moved
}

// note notes an event that is returned. What is decided is not told by a wrong one, whose
// time may be beyond the audio.
func (m *eventMerger) note(e protocol.Event) {
	if e.Type == protocol.TypeSpeakerEnd {
		delete(m.open, e.Speaker)
	}
	if e.Fault != "" {
		return
	}
	m.last = max(m.last, e.Timestamp)
	if _, ok := m.open[e.Speaker]; e.Type == protocol.TypeSpeakerStart && !ok && len(m.open) < protocol.MaxLabels {
		m.open[e.Speaker] = e
	}
}

// cutAt ends the turns that a lost stream has left open. decided is how far it
// had decided; the cut, where they end, is returned.
func (m *eventMerger) cutAt(decided float64) (cut float64, out []protocol.Event) {
	cut = protocol.Round1ms(max(decided, m.last))
	out = m.advance(cut)
	m.cut, m.early, m.carried = cut, nil, nil
	for _, label := range slices.Sorted(maps.Keys(m.open)) {
		if cut-m.open[label].Timestamp < minTurn {
			m.carried = append(m.carried, label)
		} else {
			out = append(out, m.endTurn(label, cut))
		}
	}
	return cut, out
}

// label is the session's label for a label of the current stream. After a
// stream that was not resumed, the same label may be another person: it gets a
// suffix.
func (m *eventMerger) label(theirs string) string {
	theirs = protocol.Label(theirs)
	if ours, ok := m.labels[theirs]; ok {
		return ours
	}
	if len(m.used) >= maxUsed {
		return theirs
	}
	ours := theirs
	for n := m.notResumed + 1; m.notResumed > 0 && m.used[ours]; n++ {
		ours = fmt.Sprintf("%s#%d", theirs, n)
	}
	m.labels[theirs] = ours
	if m.notResumed > 0 {
		m.newLabels = append(m.newLabels, ours)
	}
	m.used[ours] = true
	return ours
}
