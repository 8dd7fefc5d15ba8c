package trace

import (
	"fmt"
	"time"
)

// From these limits on, a service counts as silent, slow or late.
const (
	// MaxSilence is for what the service sends, pongs included.
	MaxSilence = 3 * time.Second
	// MaxPong is for the answer to a ping, which waits behind the audio before it.
	MaxPong = 2 * time.Second
	// MaxLag is for an event after its audio, where the service has the usual
	// latency.
	MaxLag = 5 * time.Second
	// lagMargin is how much later than the latency an event may be.
	lagMargin = 3 * time.Second
)

// The likely causes of a problem, without a period.
const (
	CauseLate   = "the service is overloaded or something buffers them"
	CauseSlow   = "the service or the connection is too slow"
	CauseSilent = "the service or the network hangs"
)

// Health says how late a service is. The zero value is a stream of which nothing
// is known, or none.
type Health struct {
	// Reply is the time since the service last sent something, pongs included;
	// negative = it has sent nothing on this stream.
	Reply time.Duration
	// Unconfirmed is how long ago the newest audio was sent that the service is
	// known to have received.
	Unconfirmed time.Duration
	// Lag is how long after its audio the newest event came, MaxLag the largest lag;
	// negative = no event yet.
	Lag, MaxLag time.Duration
	// Problem is what is wrong, Cause the likely reason; "" = nothing is.
	Problem, Cause string
}

// Health judges the newest stream, if it is open. latency is
// how far behind the newest sample the service decides, 0 = not known.
func (s Status) Health(now time.Time, latency time.Duration) Health {
	if s.Opened.IsZero() || s.Over {
		return Health{}
	}
	h := Health{Reply: -1, Unconfirmed: s.Ping, Lag: s.Lag, MaxLag: s.MaxLag}
	lastReply := s.Opened
	if s.LastReceived.After(s.Opened) {
		lastReply = s.LastReceived
		h.Reply = max(now.Sub(s.LastReceived), 0)
	}
	silent := now.Sub(lastReply)
	// While a ping waits for longer than usual, only the audio before the newest
	// answered one is known to have arrived. A service that sends events and no
	// pong at all does not answer pings.
	if ignoresPings := s.PingAt.IsZero() && s.Lag >= 0; !s.Unanswered.IsZero() && !ignoresPings && now.Sub(s.Unanswered) > max(time.Second, 2*s.Ping) {
		answered := s.Opened
		if !s.PingAt.IsZero() {
			answered = s.PingAt.Add(-s.Ping)
		}
		h.Unconfirmed = now.Sub(answered)
	}
	switch {
	case s.Ping > MaxPong:
		h.Problem, h.Cause = fmt.Sprintf("audio arrives %.0f s late", h.Unconfirmed.Seconds()), CauseSlow
	case silent > MaxSilence && !s.Unanswered.IsZero():
		h.Problem, h.Cause = fmt.Sprintf("nothing received for %d s", int(silent.Seconds())), CauseSilent
	case s.Lag > max(MaxLag, latency+lagMargin):
		h.Problem, h.Cause = fmt.Sprintf("events arrive %.0f s late", s.Lag.Seconds()), CauseLate
	}
	return h
}
