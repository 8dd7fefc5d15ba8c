package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hubbub/protocol"
	"hubbub/tui"
)

// linkChanged tells people that the stream was lost, or goes on.
func (s *session) linkChanged(c *protocol.LinkChange) error {
	if c.Lost != nil {
		return s.display.notice("the stream was lost and is being resumed: "+tui.Clean(c.Lost.Error()), true)
	}
	text := []string{"the stream goes on"}
	if lost := c.Gap.End - c.Gap.Start; lost > 0.05 {
		text = append(text, fmt.Sprintf("nobody knows who spoke in the %.1f s from %s on", lost, clock(c.Gap.Start)))
	}
	if !c.Known {
		text = append(text, "its speakers have new labels, because the service does not know the ones before"+s.display.joinHint())
	}
	return s.display.notice(strings.Join(text, "; "), false)
}

// linkState is what the screen shows of the connection.
func (s *session) linkState(link tui.LinkState, reason string) (tui.LinkState, string, *tui.Retry) {
	st := s.wire.Status()
	if st.Lost == nil || link != tui.Open && link != tui.Draining {
		return link, reason, nil
	}
	// The newest cause tells most.
	cause := st.Lost
	if st.Failed != nil {
		cause = st.Failed
	}
	r := &tui.Retry{Try: st.Tries}
	if !st.Next.IsZero() {
		r.In = max(0, int(math.Ceil(time.Until(st.Next).Seconds())))
	}
	return tui.Reconnecting, cause.Error(), r
}

// gaps are the stretches of which nobody knows who spoke: chunks that the
// capture dropped, and those that no stream has decided.
func (s *session) gaps() []tui.Span {
	gaps := s.history.Gaps()
	lost := s.wire.Gaps()
	if len(lost) == 0 {
		return gaps
	}
	all := slices.Clone(gaps)
	for _, g := range lost {
		all = append(all, tui.Span(g))
	}
	slices.SortFunc(all, func(a, b tui.Span) int { return cmp.Compare(a.Start, b.Start) })
	joined := all[:1]
	for _, g := range all[1:] {
		if last := &joined[len(joined)-1]; g.Start <= last.End {
			last.End = max(last.End, g.End)
		} else {
			joined = append(joined, g)
		}
	}
	return joined
}

// linkNotices are what is worth knowing of the connection when all is over.
func (s *session) linkNotices() (out []string) {
	st := s.wire.Status()
	if n := st.Losses; n > 0 {
		lost := 0.0
		for _, g := range s.wire.Gaps() {
			lost += g.End - g.Start
		}
		text := "the stream was lost " + map[bool]string{true: "once", false: fmt.Sprintf("%d times", n)}[n == 1]
		if lost > 0.05 {
			text += fmt.Sprintf("; nobody knows who spoke in %.1f s of it", lost)
		}
		out = append(out, text)
	}
	return out
}

// newReconnect is the flag --reconnect.
func newReconnect() span { return span{value: protocol.DefaultReconnect, max: 24 * time.Hour} }

// unattended is how long a lost stream is tried where nobody looks: enough for
// a service that restarts. A script is to hear soon that nothing comes any more.
const unattended = 15 * time.Second

// reconnectFor is how long a lost stream is tried under a display.
func (f *liveFlags) reconnectFor(d display) time.Duration {
	if _, ok := d.(*printed); ok && !f.reconnect.given {
		return min(unattended, f.reconnect.value)
	}
	return f.reconnect.value
}
