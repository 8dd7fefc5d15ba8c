// Package tui displays a session: the full-screen timeline, and the summary at
// the end. The displays without a screen are package plain.
//
// The screen never waits for the session. It asks for a display.State, an immutable
// snapshot, twenty times a second and whenever a Msg wakes it; calls that may wait run on
// goroutines of their own (display.Controls). Freezing the screen means keeping an old
// State.
//
// Where to look: model.go has the Bubble Tea model, keys.go the key bindings,
// keymap.go those that users set, mouse.go the mouse, layout.go the regions of the screen,
// viewport.go which stretch of time is shown. Each region has a file of its own:
// header.go, timeline.go, minimap.go, latest.go, list.go, microphones.go,
// status.go, prompt.go, help.go, presenter.go. annotate.go has names, merges and
// bookmarks, voices.go the learning of voices, files.go exports and recordings, summary.go
// the summary. The wire view is package wire.
package tui

import (
	"cmp"
	"math"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
	"hubbub/protocol/recovered"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/wire"
)

const (
	tickInterval = 50 * time.Millisecond
	noticeTime   = 8 * time.Second         // a warning, an error or a result is shown
	confirmTime  = 3 * time.Second         // the answer to a key is shown
	peakHold     = 1500 * time.Millisecond // the meter shows a peak
	maxWaiting   = 3                       // messages that wait to be shown, the newest
	answerTime   = 50 * time.Millisecond   // an answer of the terminal takes to arrive
)

type (
	tickMsg      struct{}
	continuedMsg struct{} // the program goes on after it was stopped
	resultMsg    func()   // what a command that has run leaves to the goroutine of the screen
)

// model is the one Bubble Tea model. Update changes it and never waits; View
// draws it. The regions of the screen are methods that draw a part of it and
// have no state of their own.
type model struct {
	o        Options
	theme    *canvas.Theme
	glyphs   *canvas.Glyphs
	bindings []binding
	now      func() time.Time
	w, h     int
	commands []tea.Cmd        // to be run after Update
	panicked *recovered.Error // ended the display

	// What is shown.
	state       display.State  // the newest snapshot
	counters    display.State  // the snapshot whose counters are shown; see updateCounters
	countersAt  int64          // the second in which it was taken
	frozen      *display.State // the snapshot that the timeline shows, or nil = the newest
	annotations *protocol.AnnotationsStore
	cache       speakerCache
	elapsed     time.Duration // wall clock since the session began, in whole seconds
	notice      string        // the newest message, for noticeFor
	noticeStyle canvas.Style
	noticeAt    time.Time
	waiting     []Msg   // shown one after the other, each for confirmTime at least
	peak        float32 // of the meter, for peakHold
	peakAt      time.Time

	// How it is shown.
	view        viewport
	help        int             // page of the help, from 1; 0 = closed
	presenter   bool            // the presenter view is open
	wire        *wire.View      // the wire view; nil = closed
	list        *listView       // the list of turns; nil = closed
	microphones *microphoneView // the choice of the microphone; nil = closed
	sortByTalk  bool            // lanes in order of talk time, else of first speech
	solo        string          // label of the only speaker who is not muted, or ""
	mouse       bool

	// What the user is doing.
	selected  string          // label of the selected lane, or ""
	input     *textInput      // text that is being typed, or nil
	choice    *laneChoice     // a question for a lane, or nil
	question  *voiceQuestion  // nil = nothing is asked
	offered   map[string]bool // labels whose voice the user was asked about
	corrected int64           // revision of the annotations that Memory.Correct has seen
	separate  map[string]bool // new labels that the user said are other people
	bookmark  float64         // position of the bookmark reached last; -1 = none
	cursor    float64         // position in a view that stands still; -1 = none
	jump      bookmarkJump
	answerAt  time.Time       // when an answer of the terminal began
	running   map[string]bool // names of what runAsync runs
	quitAsked bool            // quitting has asked for confirmation
	quitWaits bool            // for what runs

	suspended   bool // by ctrl+z, until the program goes on
	interrupted bool // by ctrl+c
	quitting    bool // by q or ctrl+c
}

func newModel(o Options, t *canvas.Theme, g *canvas.Glyphs) *model {
	m := &model{o: o, theme: t, glyphs: g, now: time.Now, w: 80, h: 24, bookmark: -1, cursor: -1, mouse: o.Mouse, annotations: o.Annotations, separate: map[string]bool{}, running: map[string]bool{}, offered: map[string]bool{}}
	if m.annotations == nil {
		m.annotations = protocol.NewAnnotationsStore(protocol.Annotations{})
	}
	m.bindKeys()
	return m
}

func (m *model) Init() tea.Cmd {
	_, cmd := m.Update(tickMsg{})
	return cmd
}

// start lets Bubble Tea run a command on a goroutine of its own, after Update. A panic of the
// command is its message.
func (m *model) start(cmd tea.Cmd) {
	m.commands = append(m.commands, func() (msg tea.Msg) {
		defer func() {
			if v := recover(); v != nil {
				msg = recovered.New("the display crashed", v)
			}
		}()
		return cmd()
	})
}

// started are the commands since it was called last.
func (m *model) started() tea.Cmd {
	cmd := tea.Batch(m.commands...)
	m.commands = nil
	return cmd
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tickMsg:
		m.refresh()
		m.start(tea.Tick(tickInterval, func(time.Time) tea.Msg { return tickMsg{} }))
		m.correctVoices()
		m.listAgain()
	case Msg:
		if msg.Text != "" {
			m.waiting = append(m.waiting[max(0, len(m.waiting)-maxWaiting+1):], msg)
		}
		m.refresh()
	case tea.WindowSizeMsg:
		// Under tmux the first size can be 0x0.
		if m.w, m.h = msg.Width, msg.Height; m.w <= 0 || m.h <= 0 {
			m.w, m.h = 80, 24
		}
	case tea.KeyMsg:
		m.key(msg)
	case tea.MouseMsg:
		m.click(msg)
	case resultMsg:
		msg()
	case continuedMsg:
		if !m.suspended { // else Bubble Tea does it
			m.start(redraw())
		}
		m.suspended = false
	case tea.ResumeMsg:
		if m.mouse { // Bubble Tea has turned it off
			m.start(tea.EnableMouseCellMotion)
		}
	case *recovered.Error: // of a command
		m.panicked = msg
		m.start(tea.Quit)
	}
	return m, m.started()
}

// refresh takes the newest snapshot.
func (m *model) refresh() {
	s, now := m.o.Snapshot(), m.now()
	if m.o.Wire != nil {
		s.SetHealth(m.o.Wire().Status.Health(now, s.Latency))
	}
	if s.Conn == display.Failed && m.state.Conn != display.Failed && m.noticeStyle == canvas.Bad {
		m.notice = "" // that the stream is resumed is over
	}
	m.state = s
	m.updateCounters(now)
	if !s.Started.IsZero() && !s.Finished() {
		m.elapsed = max(now.Sub(s.Started), 0).Truncate(time.Second)
	}
	if now.Sub(m.noticeAt) > m.noticeFor() {
		m.notice = ""
	}
	// A prompt is where a notice would be. A problem replaces a notice at once: the notice
	// may be that it was over.
	for !m.prompting() && len(m.waiting) > 0 && (m.notice == "" || now.Sub(m.noticeAt) > confirmTime || m.waiting[0].Problem && m.noticeStyle == canvas.Warn) {
		w := m.waiting[0]
		m.waiting = m.waiting[1:]
		m.notify(w.Text, map[bool]canvas.Style{true: canvas.Bad, false: canvas.Warn}[w.Problem])
	}
	if peak := s.Level.Peak; peak >= m.peak || now.Sub(m.peakAt) > peakHold {
		m.peak, m.peakAt = peak, now
	}
	if m.wire != nil {
		m.wire.Refresh(m.o.Wire, now)
	}
}

// updateCounters takes the newest counters once a second, because digits that
// change faster cannot be read, or at once when something happened that the user
// must see.
func (m *model) updateCounters(now time.Time) {
	s, c := m.state, m.counters
	if at := now.Unix(); at != m.countersAt || s.Conn != c.Conn || s.Dropped != c.Dropped || s.Overflows != c.Overflows || (s.Health.Problem == "") != (c.Health.Problem == "") {
		m.counters, m.countersAt = s, at
	}
}

// noticeFor is how long the notice is shown: what the user did is known to them.
func (m *model) noticeFor() time.Duration {
	switch m.noticeStyle {
	case canvas.Warn, canvas.Bad, canvas.Good: // results, such as a path, take time to read
		return noticeTime
	case canvas.Dim:
		if len(m.running) > 0 { // it says what runs
			return math.MaxInt64
		}
	}
	return confirmTime
}

// notify shows a line for a while, at most until the next key.
func (m *model) notify(text string, style canvas.Style) {
	m.notice, m.noticeStyle, m.noticeAt = display.TerminalSafe(text), style, m.now()
}

// session is what the screen shows: the frozen snapshot, or the newest.
func (m *model) session() *display.Session {
	if m.frozen != nil {
		return m.annotate(*m.frozen)
	}
	return m.annotate(m.state)
}

func (m *model) annotate(s display.State) *display.Session {
	a, revision := m.annotations.Load()
	if c := &m.cache; c.revision != revision || !display.EqualTurns(c.timeline, s.Timeline) {
		*c = speakerCache{revision, s.Timeline, a.Speakers(s.Timeline)}
	}
	out := s.Annotate(a, m.cache.speakers, m.solo)
	if m.sortByTalk {
		// By finished turns only: else speakers would change places while they
		// speak.
		slices.SortStableFunc(out.Speakers, func(p, q display.Speaker) int { return cmp.Compare(q.Lane.Talk, p.Lane.Talk) })
	}
	return out
}

// speakerCache keeps the newest speakers: merging hours of turns twenty times a
// second would cost too much. The zero value is that of no lanes.
type speakerCache struct {
	revision int64 // of the annotations
	timeline protocol.Snapshot
	speakers []protocol.Speaker
}
