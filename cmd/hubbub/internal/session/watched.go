package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/crash"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/hint"
	"hubbub/protocol/recovered"
	"hubbub/protocol/trace"
	"hubbub/tui/display"
)

// awaitSender is what a watcher does when the stream itself is lost, and not its connection.
const awaitSender = "the sender lost its stream, waiting for it to resume"

// senderSilence is from when on the sender counts as silent: the states come every half a second, and a connection that
// hangs is reported first.
const senderSilence = trace.MaxSilence + 500*time.Millisecond

// Watched is a stream that another client sends. It has no audio and sends
// nothing.
type Watched struct {
	id          string
	stream      *client.Watcher
	annotations *protocol.AnnotationsStore
	server      string
	source      capture.Info
	timeline    *protocol.Timeline
	started     time.Time
	now         func() time.Time

	phase
	ended     bool            // by this side, before the stream was over
	newest    float64         // position that the service has sent, in seconds
	since     time.Time       // when the last state arrived: a service sends only those that differ
	status    string          // of the stream; "" = unknown
	undecided []protocol.Span // by the sender's streams, in order
}

// NewWatched is a session that begins now. server is the display name of the service.
func NewWatched(id string, stream *client.Watcher, annotations *protocol.AnnotationsStore, server string) *Watched {
	clean := protocol.Clean(id, 64)
	return &Watched{
		id: id, stream: stream, annotations: annotations, server: server, phase: phase{conn: display.Open},
		source: capture.Info{Name: "stream " + clean, Base: clean}, timeline: protocol.NewTimeline(), started: time.Now(), now: time.Now,
	}
}

func (w *Watched) end() {
	w.mu.Lock()
	w.ended = w.ended || !w.conn.Over()
	w.mu.Unlock()
	w.stream.Close()
}

func (w *Watched) run(_ context.Context, d Display) error {
	receiveErr := recovered.Guard(func() error { return w.receive(d) })
	w.mu.Lock()
	ended := w.ended
	w.mu.Unlock()
	w.stream.Close() // after a panic of receive
	outcome := streamOutcome(w.stream.Wait())
	if ended || recovered.Caught(receiveErr) { // the stream itself did not end
		outcome = nil
	}
	w.setOver(outcome)
	return cmp.Or(outcome, receiveErr)
}

func (w *Watched) receive(d Display) error {
	unused := recording.NewRecorder(recording.Info{}, w.annotations) // a watched stream is not recorded
	out := output{timeline: w.timeline, rec: unused, display: d, transcriber: &transcriber{}, fromService: w.stream.Words(), end: w.end}
	for updates := w.stream.Updates(); updates != nil; {
		select {
		case <-out.due():
			out.release()
		case u, more := <-updates:
			if !more {
				updates = nil
				continue
			}
			crash.TestHook("receive")
			switch e := u.Event; {
			case u.Change != nil:
				w.noteGap(u.Change.Gap)
				text, lost := describeChange(u.Change, d), u.Change.Lost
				if lost != nil {
					text = awaitSender + ": " + lost.Error()
				}
				out.keep(d.notice(text, lost != nil))
			case e.Type == protocol.TypeStreamState: // one that cannot be parsed is of a newer service
				if e.State != nil {
					w.setStatus(*e.State)
				}
			default:
				out.event(max(w.position(), e.Timestamp), e)
			}
		}
	}
	out.streamOver(w.position())
	return out.failed
}

// noteGap keeps a stretch that no stream has decided.
func (w *Watched) noteGap(gap protocol.Span) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if gap.End-gap.Start > noticeableGap {
		w.undecided = append(w.undecided, gap)
	}
}

// position is the newest position that is known, in seconds: an event may be newer than
// what the service has sent.
func (w *Watched) position() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(w.newest, w.timeline.Snapshot().Decided)
}

// streamOutcome is why a stream ended; nil for one that is done.
func streamOutcome(end client.CloseInfo) error {
	switch {
	case end.Err != nil:
		return end.Err
	case end.Text == protocol.StatusDone:
		return nil
	}
	return hint.Add(fmt.Errorf("the stream is over: %s", cmp.Or(end.Text, "the service does not say how")),
		"The turns that the service kept are displayed; the sender knows the cause.")
}

func (w *Watched) setStatus(s protocol.StreamState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status, w.newest, w.since = s.Status, max(w.newest, s.Timestamp), w.now()
}

func (w *Watched) about() capture.Info { return w.source }

func (w *Watched) controls() display.Controls {
	return display.Controls{Annotations: w.annotations, Export: w.export}
}

func (w *Watched) state() display.State {
	conn := w.stream.Status()
	w.mu.Lock()
	defer w.mu.Unlock()
	timeline := w.timeline.Snapshot()
	position := max(w.newest, timeline.Decided)
	st := display.State{
		Timeline: timeline, Position: position, Sent: position,
		Source: w.source.Name, Server: w.server, Stream: w.id, Watching: true,
		Conn: w.conn, ConnReason: w.reason, Started: w.started, Gaps: slices.Clip(w.undecided),
	}
	if w.conn.Over() {
		return st
	}
	switch {
	case conn.Lost != nil && conn.Sender:
		st.Conn, st.ConnReason = display.Connecting, awaitSender+": "+conn.Lost.Error()
	case conn.Lost != nil:
		st.Conn, st.ConnReason = display.Connecting, cmp.Or(conn.LastError, conn.Lost).Error()
	}
	switch {
	case w.status == protocol.StatusCreated:
		st.SourceNotice = "not begun"
	case w.status == protocol.StatusRunning && conn.Lost == nil && w.now().Sub(w.since) > senderSilence:
		st.InputProblem = fmt.Sprintf("no audio from the sender since %s: has it lost its connection?", display.Clock(position))
	}
	return st
}

func (w *Watched) notices() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	if n := w.stream.Status().Losses; n > 0 && w.conn != display.Failed {
		out = append(out, fmt.Sprintf("the connection was lost %s and resumed; no event is missing", display.Times(n)))
	}
	counts := w.timeline.Snapshot().Counts
	if w.ended { // what is open then is no fault
		counts.Unended = 0
	}
	return append(out, faultNotices(counts)...)
}

func (w *Watched) export(annotations protocol.Annotations) (string, error) {
	return exportState(w.state(), w.source.Base, w.source.Name, "", annotations)
}
