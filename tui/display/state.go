// Package display contains what all displays of a session share: the State of the
// session at a moment, the Session with the users' annotations applied, and values as
// text. What comes from a network is made safe for a terminal here (TerminalSafe).
package display

import (
	"slices"
	"sync"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/trace"
)

// State is a session at one moment. Whoever hands it out never changes it, nor
// anything that it points at, afterwards.
type State struct {
	// Timeline holds the turns by label.
	Timeline protocol.Snapshot
	// Position and Sent are on the capture clock, in seconds: the newest sample
	// of the source, and the newest that was sent.
	Position, Sent float64
	// Length is how long the input is, in seconds; 0 = unknown or endless.
	Length float64
	// Latency is how far behind the newest sent sample the service commits
	// turns; 0 = unknown, drawn as one second.
	Latency time.Duration
	// Level is the input level now.
	Level Level
	// Levels are the input levels since the start of the session, ten per
	// second. The slice is shared between snapshots and only grows at its end:
	// read only.
	Levels []Level
	// Gaps are the stretches of the session that no stream has decided, and those in
	// which the device delivered nothing, in order and without overlap: lost
	// connections, dropped audio, outages of the microphone.
	Gaps []protocol.Span
	// Source names the input, SourceNotice is what users must know about it
	// ("no microphone: playing the demo"), Server names the service.
	Source, SourceNotice, Server string
	// InputProblem says what is wrong with the microphone, in one line; "" =
	// nothing is. InputLost says that it, or one of two, delivers no audio at all.
	InputProblem string
	InputLost    bool
	// Recording is the state of the session's recording; nil = not recorded.
	Recording *Recording
	// Conn is the state of the connection, ConnReason why it is not open.
	Conn       ConnState
	ConnReason string
	// Retry is the next attempt while Conn is Reconnecting, else nil.
	Retry *Retry
	// NewLabels are the labels of a stream that was opened after a lost
	// connection and does not know the earlier labels: any of them may be a
	// speaker who has a lane already. The slice is shared: read only.
	NewLabels []string
	// ChunksSent were sent, Dropped were discarded because the queue was full,
	// Overflows were lost in the device.
	ChunksSent, Dropped, Overflows int64
	// Ahead is audio sent minus wall clock: positive ahead of real time,
	// negative behind it.
	Ahead time.Duration
	// Started is when the session began; zero = not yet.
	Started time.Time
	// Stream is the service's id of the stream, with which others can watch it;
	// "" where nobody else can. Trust are the flags that they need for it, beside its address.
	Stream, Trust string
	// Page is the address of the page for an audience; "" = there is none.
	Page string
	// Watching says that another client sends the stream and this one only
	// receives its events: there is no audio, and nothing is sent.
	Watching bool
	// Playback is the state of a recording's playback; nil for a live session.
	Playback *Playback

	// Health says how late the service is. The displays that see the connection
	// set it.
	Health trace.Health
}

// SetHealth sets Health. A watcher that hears nothing of the service does not know about the sender.
func (s *State) SetHealth(h trace.Health) {
	s.Health = h
	if s.Watching && h.Reply > trace.MaxSilence {
		s.InputProblem = ""
	}
}

// Recording is the state of a recording.
type Recording struct {
	Length      float64 // seconds
	Bytes, Free int64   // size, and free space on the disk; 0 = unknown
	Stopped     string  // why and since when it has stopped, in one line; "" = it runs
}

// ConnState is the state of the connection to the service.
type ConnState int

// The states, in the order in which a session without failures passes them.
const (
	Connecting   ConnState = iota // no stream yet
	Open                          // audio is sent
	Draining                      // end_of_stream is sent, the last events arrive
	Closed                        // ended normally
	Failed                        // ended otherwise; ConnReason says why
	Reconnecting                  // lost, and resuming; ConnReason says why
)

// String is the word on the screen.
func (c ConnState) String() string {
	return [...]string{
		Connecting: "connecting", Open: "connected", Draining: "finishing", Closed: "closed", Failed: "failed", Reconnecting: "reconnecting",
	}[c]
}

// Over reports whether the session is, normally or not.
func (c ConnState) Over() bool { return c == Closed || c == Failed }

// Level is the level of a chunk, linear: 1 is full scale.
type Level struct{ RMS, Peak float32 }

// Retry is an attempt to resume a lost stream.
type Retry struct {
	Try int // counted from 1
	In  int // seconds until it begins; 0 = now
}

// Playback is the state of a Player.
type Playback struct {
	Paused bool
	Speed  float64                  // 1 = as it was recorded
	Whole  func() protocol.Snapshot // the timeline at the end of the recording
}

// Player plays a recording. Its methods are called from the screen's goroutine
// and must not wait; the next State shows what they changed.
type Player interface {
	// TogglePause pauses or resumes.
	TogglePause()
	// Seek goes to a position of the recording, in seconds; the player bounds it.
	Seek(seconds float64)
	// Faster goes to the next power of two above (steps = 1) or below (-1) the speed.
	Faster(steps int)
}

// Microphone is a device that the session can listen to.
type Microphone struct {
	Input, Name, System string
	Default, Used       bool
}

// Microphones are the devices of the machine. List and Use may wait: the screen calls
// them on goroutines of their own.
type Microphones interface {
	List() ([]Microphone, error)
	// Measure measures the level of a device from now on, and no other; "" = none.
	Measure(input string)
	// Reading is the newest level of that device, at once; known says that there is one.
	Reading() (level Level, known bool, err error)
	// Use continues the session with a device. The text is one line.
	Use(input string) (text string, err error)
}

// VoiceMemory learns the voices of named speakers, so that later sessions recognise
// them. Remember, Correct and Never may wait: the screen calls them on goroutines of
// their own. The texts are one line.
type VoiceMemory interface {
	// Asks reports, at once, whether the user may be asked.
	Asks() bool
	// Folder is where the voices are stored.
	Folder() string
	// Stored reports, at once, whether a voice of this name is stored. Remember replaces it.
	Stored(name string) bool
	// Remember learns the voice of a label's speaker, who has a name.
	Remember(label string) (text string, err error)
	// Correct applies the present names to what was learnt in this session; text is
	// "" if nothing has changed.
	Correct() (text string, err error)
	// Never makes Asks false, in later sessions too.
	Never() error
}

// Controls are what the user of a display sees of a session and does with it. What is nil
// is not offered. Export, Record and what the interfaces say so of may wait: the screen
// calls them on goroutines of their own, one at a time. Their texts are one line.
type Controls struct {
	// Snapshot returns the newest State at once.
	Snapshot func() State
	// Annotations are what users add to the session: names, merges, mutes, bookmarks. The
	// display changes them; whoever provides the store saves them.
	Annotations *protocol.AnnotationsStore
	// Export writes the session into files and says where they are. Without an error the
	// display marks the annotations as saved.
	Export func(protocol.Annotations) (string, error)
	// Record starts a recording, or stops the one that runs, and says where it is.
	Record      func() (string, error)
	Player      Player      // of a recording
	Memory      VoiceMemory // learns voices
	Microphones Microphones // to choose from
	// Wire returns what went over the connection, at once.
	Wire func() trace.Snapshot
}

// unknownLatency stands for State.Latency when that is 0, in seconds.
const unknownLatency = 1.0

// healthJitter is how much later than usual audio and events may arrive, in
// seconds, before the undecided part of the timeline grows: it should not move
// with the jitter of a network.
const healthJitter = 0.5

// pacedAhead is how far the audio may run ahead of real time where a service limits that,
// in seconds.
const pacedAhead = 5.0

// DecidedUntil is the position in seconds up to which turns are committed: the
// service has had the audio and its latency has passed, or an event proves it.
// Audio that waits to be sent, or that the service may not have received yet, is
// undecided, however old it is; so is audio whose events may still be on their
// way, because the last ones were late.
func (s State) DecidedUntil() float64 {
	if s.Finished() {
		return s.Position
	}
	latency := s.Latency.Seconds()
	if latency <= 0 {
		latency = unknownLatency
	}
	// A service without pace gets more audio than time passes.
	pace := 1.0
	if ahead := s.Ahead.Seconds(); ahead > pacedAhead && s.Sent > ahead {
		pace = s.Sent / (s.Sent - ahead)
	}
	late := latency
	if unconfirmed := pace * s.Health.Unconfirmed.Seconds(); unconfirmed > healthJitter {
		late += unconfirmed
	}
	if lag := pace * s.Health.Lag.Seconds(); lag > latency+healthJitter {
		late = max(late, lag)
	}
	return max(min(s.Position, max(s.Timeline.Decided, s.Sent-late)), 0)
}

// Searched is the state whose turns are searched: of a replay, that at the end of the recording.
func (s State) Searched() State {
	if s.Playback != nil {
		s.Timeline, s.Position = s.Playback.Whole(), s.Length
	}
	return s
}

// Connected reports whether there is a stream whose health counts.
func (s State) Connected() bool { return s.Conn == Open || s.Conn == Draining }

// Finished reports whether the input has ended and all events have arrived, or the
// session has failed: nothing changes any more.
func (s State) Finished() bool { return s.Conn.Over() }

// EqualTurns reports whether two timelines have the same turns. The finished turns of
// a label only grow, so that their number is enough.
func EqualTurns(a, b protocol.Snapshot) bool {
	return a.Texts == b.Texts && slices.EqualFunc(a.Lanes, b.Lanes, func(x, y protocol.Lane) bool {
		return x.Speaker == y.Speaker && x.Match == y.Match && len(x.Turns) == len(y.Turns) && x.Open == y.Open && x.OpenSince == y.OpenSince && x.Talk == y.Talk
	})
}

// ChunksPerSecond is the rate of State.Levels.
const ChunksPerSecond = int(time.Second / protocol.ChunkDuration)

// maxHistory bounds what a History keeps, in chunks: as long as a timeline may
// be.
const maxHistory = protocol.MaxTimestamp * int64(ChunksPerSecond)

// History collects the Levels of a State. One goroutine may add while any number
// read. The zero value is ready.
type History struct {
	mu     sync.Mutex
	levels []Level
}

// Add takes the level of chunk seq, counted from 0. Chunks that were left out
// between two calls count as silent; an earlier chunk changes nothing.
func (h *History) Add(seq int64, l Level) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := int64(len(h.levels))
	if seq < n || seq >= maxHistory {
		return
	}
	if seq > n {
		h.levels = append(h.levels, make([]Level, seq-n)...)
	}
	h.levels = append(h.levels, l)
}

// Levels are the levels so far, for State.Levels.
func (h *History) Levels() []Level {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.levels[:len(h.levels):len(h.levels)]
}
