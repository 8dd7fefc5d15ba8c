package client

import (
	"context"
	"errors"

	"hubbub/protocol"
)

// A sender that loses its stream opens a new one, which has an id and a clock of
// its own. For a watcher both are one session, as they are for the sender: the
// status of the lost stream names the new one, whose input says where on the old
// clock it begins. Its events are merged by the eventMerger of senders.

// errAwaitingSender is the error of an attempt before the sender has resumed.
var errAwaitingSender = errors.New("the sender has not resumed yet")

// resumed waits for the stream that resumes the one that is over, and opens it. It
// returns nil when there will be none: the stream ended as it should, or the
// service does not say that it may be resumed, or nobody resumes it in time, or there is
// none.
func (w *Watcher) resumed() (next *Stream) {
	if w.info.Reason != Completed || w.info.Text == protocol.StatusDone || w.reconnect.limit <= 0 {
		return nil
	}
	call, cancel := context.WithTimeout(w.ctx, attemptTimeout)
	id, awaited, err := w.successor(call)
	cancel()
	switch {
	case err != nil && retryAfterRefusal(watching, err): // the service may be the one that restarts
	case err != nil, id == "" && !awaited:
		return nil
	}
	lost := errors.New(w.info.Text)
	w.reconnect.awaitSender(lost)
	w.deliver(Update{Change: &ConnectionChange{Lost: lost}})
	var by protocol.LiveStatus
	if id != "" { // a watcher of the past need not wait
		call, cancel := context.WithTimeout(w.ctx, attemptTimeout)
		next, by, err = w.openSuccessor(call, id)
		cancel()
	}
	if next == nil {
		err = w.reconnect.run(w.ctx, func(ctx context.Context) (_ attemptStep, err error) {
			next, by, err = w.openResumed(ctx)
			return watching, err
		})
	}
	w.reconnect.connected()
	if errors.Is(err, errClosedHere) { // else the end of the stream itself counts
		w.info.Err = err
	}
	if next == nil {
		return nil
	}
	before, _ := protocol.InputField(by.Input, "resume").(string)
	if _, known := w.bases[before]; !known {
		before = w.id
	}
	begins := w.received
	if at, known := by.ResumeAt(); known {
		begins = w.bases[before] + at
	}
	w.id, w.before, w.got, w.bases[by.ID] = by.ID, before, 0, begins
	w.begin(begins)
	return next
}

// openResumed makes one attempt to open the stream that resumes the newest one; nil =
// nobody has resumed it in time.
func (w *Watcher) openResumed(ctx context.Context) (next *Stream, by protocol.LiveStatus, err error) {
	id, awaited, err := w.successor(ctx)
	switch {
	case err != nil:
		return nil, by, err
	case id != "":
		return w.openSuccessor(ctx, id)
	case awaited:
		err = errAwaitingSender
	}
	return nil, by, err
}

// successor returns the stream that continues the newest one, or "" and whether one may follow. A sender whose handshake was
// lost knows nothing of the newest stream: it resumes the one before it once more.
func (w *Watcher) successor(ctx context.Context) (id string, awaited bool, err error) {
	status, err := w.client.StreamStatus(ctx, w.id)
	awaited = status.Resumable
	if err == nil && !w.canFollow(status.ResumedBy) && w.before != "" {
		status, err = w.client.StreamStatus(ctx, w.before)
	}
	if err == nil && w.canFollow(status.ResumedBy) {
		id = status.ResumedBy
	}
	return id, awaited, err
}

// openSuccessor opens the stream that resumes the newest one.
func (w *Watcher) openSuccessor(ctx context.Context, id string) (next *Stream, by protocol.LiveStatus, err error) {
	if by, err = w.client.StreamStatus(ctx, id); err != nil {
		return nil, by, err
	}
	by.ID = id
	next, err = w.client.openWatch(ctx, id, 0, w.words)
	return next, by, err
}

// canFollow reports whether an id can be that of the next stream.
func (w *Watcher) canFollow(id string) bool {
	_, followed := w.bases[id]
	return id != "" && !followed
}

// begin merges the stream whose clock begins at base, in seconds of the session.
func (w *Watcher) begin(base float64) {
	decided := base + warmUp.Seconds() // where the sender's cut is
	if base >= w.received {            // audio was lost
		decided = w.received - (assumedLatency + eventDelay).Seconds()
	}
	w.merger.last = min(w.merger.last, max(decided, w.received)) // no event beyond the audio moves the cut
	cut, events := w.merger.cutAt(decided)
	from := protocol.Round1ms(max(cut, w.received))
	gap := protocol.Span{Start: from, End: max(from, protocol.Round1ms(base))}
	w.deliverEvents(append(events, w.merger.nextStream(max(cut, base), true)...))
	w.deliver(Update{Change: &ConnectionChange{Gap: gap, Resumed: true}})
}

// place puts a message on the clock of the session.
func (w *Watcher) place(e protocol.Event) []protocol.Event {
	placed := func(at float64) float64 { return protocol.Round1ms(at + w.bases[w.id]) }
	if e.State == nil {
		if e.Err == "" {
			e.Timestamp, e.Transcript.Start, e.Transcript.End = placed(e.Timestamp), placed(e.Transcript.Start), placed(e.Transcript.End)
		}
		return w.merger.add(e)
	}
	e.State.Timestamp = placed(e.State.Timestamp)
	w.received = max(w.received, e.State.Timestamp)
	return append(w.merger.advance(e.State.Timestamp-(assumedLatency+eventDelay).Seconds()), e)
}
