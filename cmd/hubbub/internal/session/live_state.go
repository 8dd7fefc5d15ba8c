package session

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/tui/display"
)

func (l *Live) about() capture.Info { return l.Source }

func (l *Live) controls() display.Controls {
	c := display.Controls{Annotations: l.Annotations, Export: l.export, Record: l.toggleRecording}
	if l.voices != nil {
		c.Memory = l.voices
	}
	if l.Chunks.Switchable() {
		c.Microphones = l.mics
	}
	return c
}

func (l *Live) state() display.State {
	source, stream := l.Chunks.Stats(), l.Stream.State()
	st := display.State{
		Timeline:     l.timeline.Snapshot(),
		Position:     source.Position.Seconds(),
		Sent:         stream.Sent,
		Length:       l.Source.Duration.Seconds(),
		Latency:      l.Latency,
		Levels:       l.levels.Levels(),
		Source:       source.Device,
		SourceNotice: cmp.Or(strings.Join(source.Notices, "; "), l.Source.Notice),
		Server:       l.Server,
		NewLabels:    stream.NewLabels,
		ChunksSent:   stream.ChunksSent,
		Dropped:      stream.Dropped + l.Recorder.Dropped(),
		Overflows:    source.Overflows,
		Ahead:        stream.Ahead,
		Started:      l.started,
		Recording:    recordingState(l.Recorder),
		Gaps:         l.gaps(),
		InputProblem: inputProblem(source),
		InputLost:    source.Outage != nil,
	}
	if n := len(st.Levels); n > 0 {
		st.Level = st.Levels[n-1]
	}
	if l.Shared {
		st.Stream, st.Trust = protocol.Clean(stream.ID, 64), l.Trust
	}
	l.mu.Lock()
	st.Conn, st.ConnReason = l.conn, l.reason
	l.mu.Unlock()
	if conn := stream.Connection; conn.Lost != nil && !st.Finished() {
		st.Conn, st.ConnReason = display.Reconnecting, cmp.Or(conn.LastError, conn.Lost).Error()
		st.Retry = &display.Retry{Try: conn.Attempts}
		if !conn.NextAttempt.IsZero() {
			st.Retry.In = max(0, int(math.Ceil(time.Until(conn.NextAttempt).Seconds())))
		}
	}
	return st
}

func (l *Live) notices() []string {
	source, stream := l.Chunks.Stats(), l.Stream.State()
	out := source.Notices
	if n := stream.Connection.Losses; n > 0 {
		text := "the stream was lost " + display.Times(n)
		if lost := seconds(stream.Gaps); lost > noticeableGap {
			text += fmt.Sprintf("; %.1f s of its audio were not decided", lost)
		}
		out = append(out, text)
	}
	out = append(out, lossNotices(source, stream.Dropped)...)
	if n := l.Recorder.Dropped(); n > 0 {
		out = append(out, display.Count(n, "chunk")+" missing in the recording: the disk was too slow")
	}
	timeline := l.timeline.Snapshot()
	l.mu.Lock()
	if l.conn == display.Closed && len(timeline.Lanes) == 0 {
		switch n := timeline.Counts; {
		case n.Unknown > 0:
			out = append(out, fmt.Sprintf("the service sent no turns, but messages of unknown types: %d; `hubbub conform` tests it", n.Unknown))
		case n.Events == 0 && !l.Source.Kind.Live():
			out = append(out, "no speech was found")
		}
	}
	l.mu.Unlock()
	out = slices.Concat(out, faultNotices(timeline.Counts), l.transcriber.notices())
	l.recordMu.Lock()
	defer l.recordMu.Unlock()
	for _, dir := range l.recordings {
		out = append(out, "a recording is in "+dir)
	}
	return out
}

// noticeableGap is the shortest gap that is reported, in seconds.
const noticeableGap = 0.05

// seconds is the length of all gaps.
func seconds(gaps []protocol.Span) (all float64) {
	for _, g := range gaps {
		all += g.End - g.Start
	}
	return all
}

// describeChange says that the stream was lost, or that a new one continues.
func describeChange(c *client.ConnectionChange, d Display) string {
	if c.Lost != nil {
		return "stream lost, resuming: " + c.Lost.Error()
	}
	text := []string{"the stream continues"}
	if gap := c.Gap.End - c.Gap.Start; gap > noticeableGap && !d.Properties().StatesGaps {
		text = append(text, fmt.Sprintf("%.1f s of audio from %s on were not decided", gap, display.Clock(c.Gap.Start)))
	}
	if !c.Resumed {
		text = append(text, "the service does not know its speakers and gives them new labels"+d.Properties().JoinHint)
	}
	if c.Unrecognised {
		text = append(text, "the service refuses the voiceprints and recognises nobody")
	}
	return strings.Join(text, "; ")
}

// export writes beside the recording if there is one.
func (l *Live) export(annotations protocol.Annotations) (string, error) {
	title := "Session of " + l.started.Format("2 January 2006, 15:04")
	if l.Source.Kind == capture.File {
		title = filepath.Base(l.Source.Name)
	}
	dir, whole := l.Recorder.Dir()
	if !whole {
		dir = ""
	}
	return exportState(l.state(), l.Source.Base, title, dir, annotations)
}
