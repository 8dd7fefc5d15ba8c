package protocol

import (
	"fmt"
	"maps"
	"slices"
)

// splice makes one session of the events of several streams: on one clock, each
// turn once, and no label for two people.
//
// Each stream is the authority from its cut on: what lies before was decided by
// the one before it. Audio from a little before the cut is sent once more, so
// that the service is warm when it comes to it; what it says about that is
// clipped.
type splice struct {
	streams int               // so far; the first one's events pass unchanged
	unknown int               // streams that did not know the labels before them
	cut     float64           // where the present stream begins
	last    float64           // the newest timestamp given out
	labels  map[string]string // of the present stream, as it has them, to ours
	given   map[string]bool   // all of ours
	fresh   []string          // those that came with a stream that knew nobody
	open    map[string]float64
	early   []string // labels whose turn began before the cut and may be over by then
	carried []string // labels whose turn had only just begun at the cut
}

const (
	// justBegun is the length of a turn that a loss does not cut off: it would
	// be a splinter, shorter than services give. It stays open, for the new
	// stream to go on with.
	justBegun = 0.2
	// joinable is how far behind the cut the new stream may let it begin.
	joinable = 0.5
)

func newSplice() *splice {
	return &splice{streams: 1, labels: map[string]string{}, given: map[string]bool{}, open: map[string]float64{}}
}

// begin takes a new stream, whose events count from cut on. known says that it
// has the labels of the one before.
func (p *splice) begin(cut float64, known bool) (out []Event) {
	if !known || cut > p.cut {
		out = p.abandon()
	}
	p.streams++
	p.cut = cut
	p.early = nil
	if !known {
		p.unknown++
		p.labels = map[string]string{}
	}
	return out
}

// abandon ends the turns that no new stream goes on with.
func (p *splice) abandon() (out []Event) {
	for _, label := range p.carried {
		if since, ok := p.open[label]; ok {
			out = append(out, p.endAt(label, max(p.cut, p.last, since+0.001)))
		}
	}
	p.carried = nil
	return out
}

func (p *splice) endAt(label string, at float64) Event {
	e := NewSpeakerEvent(TypeSpeakerEnd, at, label)
	p.note(e)
	return e
}

// event puts an event of the present stream into the session. Events come in
// order of their timestamps, so that one beyond the cut shows that everything
// up to it is decided.
func (p *splice) event(e Event) (out []Event) {
	if e.Err != "" || e.Type != TypeSpeakerStart && e.Type != TypeSpeakerEnd {
		return append(out, e)
	}
	if p.streams > 1 {
		e.Speaker = p.label(e.Speaker)
		i := slices.Index(p.early, e.Speaker)
		switch {
		case e.Type == TypeSpeakerStart && e.Timestamp < p.cut:
			if i < 0 {
				p.early = append(p.early, e.Speaker)
			}
			return nil
		case e.Type == TypeSpeakerEnd && e.Timestamp <= p.cut:
			if i >= 0 {
				p.early = slices.Delete(p.early, i, i+1)
			}
			return nil
		}
		out = p.settle(e.Timestamp)
		if i := slices.Index(p.carried, e.Speaker); i >= 0 && e.Type == TypeSpeakerStart {
			p.carried = slices.Delete(p.carried, i, i+1)
			return out // it goes on
		}
		received := e.Received
		e = NewSpeakerEvent(e.Type, e.Timestamp, e.Speaker)
		e.Received = received
	} else {
		p.given[Label(e.Speaker)] = true
	}
	p.note(e)
	return append(out, e)
}

// settle gives out the turns that go on across the cut, once so much is
// decided, and ends those that do not.
func (p *splice) settle(decided float64) (out []Event) {
	if decided <= p.cut {
		return nil
	}
	for _, label := range p.early {
		if i := slices.Index(p.carried, label); i >= 0 {
			p.carried = slices.Delete(p.carried, i, i+1)
			continue // it goes on
		}
		e := NewSpeakerEvent(TypeSpeakerStart, p.cut, label)
		p.note(e)
		out = append(out, e)
	}
	p.early = nil
	if decided > p.cut+joinable {
		out = append(out, p.abandon()...)
	}
	return out
}

func (p *splice) note(e Event) {
	p.last = max(p.last, e.Timestamp)
	if e.Type == TypeSpeakerEnd {
		delete(p.open, e.Speaker)
	} else if _, ok := p.open[e.Speaker]; !ok && len(p.open) < MaxLabels {
		p.open[e.Speaker] = e.Timestamp
	}
}

// end gives out the ends of the turns that a lost stream has left open. at is
// how far it had decided; where it ends in truth is returned.
func (p *splice) end(at float64) (cut float64, out []Event) {
	cut = Round1ms(max(at, p.last))
	p.cut, p.early, p.carried = cut, nil, nil
	for _, label := range slices.Sorted(maps.Keys(p.open)) {
		if cut-p.open[label] < justBegun {
			p.carried = append(p.carried, label)
		} else {
			out = append(out, p.endAt(label, cut))
		}
	}
	return cut, out
}

// label is what a label of the present stream is called. One of a stream that
// knew nobody is not that of an earlier person, whatever it says.
func (p *splice) label(theirs string) string {
	theirs = Label(theirs)
	if ours, ok := p.labels[theirs]; ok {
		return ours
	}
	if len(p.given) >= 4*MaxLabels { // a service gone mad; the timeline refuses it as well
		return theirs
	}
	ours := theirs
	for n := p.unknown + 1; p.unknown > 0 && p.given[ours]; n++ {
		ours = fmt.Sprintf("%s#%d", theirs, n)
	}
	p.labels[theirs] = ours
	if p.unknown > 0 && !p.given[ours] {
		p.fresh = append(p.fresh, ours)
	}
	p.given[ours] = true
	return ours
}
