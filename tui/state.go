// Package tui is what people see of a session: the full-screen timeline, its
// twins without a full screen (lines, json, events, rttm, wire, and the
// accessible display), and the summary that stays behind on the normal screen.
//
// The screen never reaches into the session. It asks for a State, a plain
// snapshot that nobody changes afterwards, twenty times a second and whenever
// a Msg wakes it; freezing the view is keeping an old State.
package tui

import (
	"io"
	"time"

	"hubbub/protocol"
)

// LinkState is how the stream to the service stands.
type LinkState int

// The states of a link, in the order in which a good session meets them.
const (
	Connecting   LinkState = iota // no stream yet
	Open                          // audio goes out
	Draining                      // end_of_stream is sent, last events come in
	Closed                        // ended normally
	Failed                        // ended otherwise; LinkReason says why
	Reconnecting                  // lost, and a new one is tried; LinkReason says why
)

// String gives the word that the screen shows.
func (l LinkState) String() string {
	switch l {
	case Connecting:
		return "connecting"
	case Open:
		return "connected"
	case Draining:
		return "finishing"
	case Closed:
		return "closed"
	case Failed:
		return "failed"
	case Reconnecting:
		return "reconnecting"
	}
	return "unknown"
}

// Level is the loudness of the newest chunk, linear: 1 is full scale.
type Level struct{ RMS, Peak float32 }

// State is a session at one moment. It is a snapshot: whoever hands it out
// never changes it, nor anything that it points at, afterwards.
type State struct {
	// Timeline holds the turns by label.
	Timeline protocol.Snapshot
	// Heard and Sent are positions on the stream clock in seconds: of the
	// newest sample that the source gave, and of the newest that went out.
	Heard, Sent float64
	// Length is how long the input is, in seconds; 0 = not known or endless.
	Length float64
	// Latency is how far behind the newest sent sample the service decides
	// its turns; 0 = not known, drawn as one second.
	Latency time.Duration
	// Level is the input's loudness now.
	Level Level
	// Levels is the loudness of everything heard, ten values a second from the
	// start of the session on. The slice is shared between snapshots and only
	// ever grows at its end: read only. History keeps one.
	Levels []Level
	// Gaps are the stretches of the session that never reached the service, in
	// order and without overlap: lost connections, dropped audio. Nobody knows
	// who spoke there.
	Gaps []Span
	// Source names the input, SourceNotice is what people must know of it
	// ("no microphone: demo"), Server names the service.
	Source, SourceNotice, Server string
	// Link is the stream's state, LinkReason why it is not open.
	Link       LinkState
	LinkReason string
	// Retry is how the next try stands while Link is Reconnecting, else nil.
	Retry *Retry
	// Fresh are the labels that came with a stream that did not know those
	// before it: some of them may be people who have a lane already. The slice
	// is shared: read only.
	Fresh []string
	// ChunksSent went out; Dropped were given up for a full queue; Overflows
	// were lost in the device.
	ChunksSent, Dropped, Overflows int64
	// Ahead is audio sent minus wall clock: positive ahead of real time,
	// negative behind it.
	Ahead time.Duration
	// Started is when the session began; zero = not yet.
	Started time.Time
	// Finished says that the input has ended and the service has answered
	// everything, or that the session failed: nothing will change any more.
	Finished bool
	// Stream is the service's id of the stream, by which others can watch it;
	// "" where nobody else can.
	Stream string
	// Watching says that somebody else sends the stream, and that this side
	// only sees what the service makes of it: no sound, nothing sent.
	Watching bool
	// Playback is how a recording is being played; nil for a live session.
	Playback *Playback
}

// Span is a stretch of the stream clock, in seconds.
type Span struct{ Start, End float64 }

// Retry is a try to resume a lost stream.
type Retry struct {
	Try int // counted from 1
	In  int // seconds until it begins; 0 = now
}

// Playback is the state of a Player.
type Playback struct {
	Paused bool
	Speed  float64 // 1 = as it was recorded
}

// Player plays a recording. Its methods are called from the screen's goroutine
// and must not wait; what they change, the next State shows.
type Player interface {
	// TogglePause stops and goes on.
	TogglePause()
	// Seek goes to a position of the recording, in seconds; the player bounds it.
	Seek(seconds float64)
	// Faster doubles the speed (steps = 1) or halves it (-1).
	Faster(steps int)
}

// MsgKind tells a Msg's weight.
type MsgKind int

// The kinds of Msg.
const (
	MsgWake   MsgKind = iota // something in the State is new: a turn, a link change
	MsgNotice                // Text is worth showing for a while
	MsgError                 // Text is a problem, shown for a while
)

// Msg wakes the screen before its next tick. The mailbox is bounded; a sender
// that finds it full may drop a MsgWake, because the next tick sees the same.
type Msg struct {
	Kind MsgKind
	Text string // may come from the network: control characters are removed
}

// Theme chooses the colours.
type Theme int

// The themes. ThemeAuto asks the terminal, and takes dark for an answer when
// there is none.
const (
	ThemeAuto Theme = iota
	ThemeDark
	ThemeLight
)

// Options are what Run needs. Only Snapshot is required.
type Options struct {
	// Snapshot gives the newest State at once, without waiting for anything.
	Snapshot func() State
	// Messages wake the screen; nil = only the tick does.
	Messages <-chan Msg
	// ASCII forgoes every glyph beyond ASCII, NoColor every colour. NO_COLOR
	// and TERM=dumb in the environment have the same effect.
	ASCII, NoColor bool
	// Theme is for a dark or a light terminal.
	Theme Theme
	// Input and Output are the terminal; nil = standard input and output.
	Input  io.Reader
	Output io.Writer
	// Annotations are what people add to the session: names, merges, mutes,
	// bookmarks. The screen changes them; whoever hands the store out keeps
	// them, and says so with MarkSaved. While there are changes that nobody
	// has kept, leaving asks once more. nil = a store of the screen's own.
	Annotations *protocol.AnnotationsStore
	// Export writes the session into files and answers in one line where they
	// are. It runs on a goroutine of its own, one at a time; an answer without
	// error marks the annotations as saved. nil = the screen has no export.
	Export func(protocol.Annotations) (string, error)
	// Wire gives what was on the wire, at once; nil = there is none to look at.
	// It is asked while the wire view is open, and not otherwise.
	Wire func() protocol.WireSnapshot
	// SaveWire writes lines into a file and answers in one line where it is. It
	// runs on a goroutine of its own. nil = the wire view cannot save.
	SaveWire func(ndjson []byte) (string, error)
	// Player, for a recording, is what the keys of playing act on.
	Player Player
	// Mouse begins with the mouse on; a key turns it off for copying text.
	Mouse bool
	// Interrupt, where given, is called once when the user leaves, whether
	// with q or with ctrl+c, before Run returns. It must not wait.
	Interrupt func()
}
