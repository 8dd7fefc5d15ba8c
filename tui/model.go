package tui

import (
	"context"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
)

const (
	tickEvery  = 50 * time.Millisecond
	noticeTime = 8 * time.Second
	peakHold   = 1500 * time.Millisecond
)

type (
	tickMsg  time.Time
	endedMsg struct{} // the context of Run is over
)

// model is the one Bubble Tea model. The regions of the screen are functions
// that draw a part of it; none of them keeps anything.
type model struct {
	ctx      context.Context
	o        Options
	theme    *theme
	glyphs   *glyphs
	bindings []binding
	byKey    [anywhere + 1]map[string]*binding
	now      func() time.Time

	w, h   int
	state  State  // the newest snapshot
	calm   State  // the snapshot whose counters are shown, of this second
	calmAt int64  // that second
	frozen *State // the snapshot that the timeline stays at, or nil
	view   viewport
	help   int // the page of the help, from 1; 0 = none
	stage  bool
	wire   *wireView // the wire, in place of the timeline; nil = closed

	store     *protocol.AnnotationsStore
	revision  int64   // of the annotations, as drawn
	applied   applied // the newest timeline with its annotations
	minimap   minimap
	byTalk    bool            // lanes in order of talk time, else of first speech
	solo      string          // the label that is heard alone, or ""
	selected  string          // the label of the selected lane, or ""
	entry     *entry          // text that is being typed, or nil
	pick      *pick           // a question for a lane, or nil
	apart     map[string]bool // labels of a new connection that are people of their own
	mark      float64         // the bookmark that was reached last, -1 = none
	jumped    jumped
	mouse     bool
	asked     bool // leaving has asked whether what is not kept may go
	exporting bool

	elapsed    time.Duration // wall clock since the session started, in whole seconds
	notice     string        // the newest message, for noticeTime
	noticeRole role
	noticeAt   time.Time
	peak       float32 // of the meter, held for a moment
	peakAt     time.Time

	interrupted bool
	left        bool // Interrupt was called

	dirty  bool
	cached string
	drawn  int // views that were really drawn, for tests
}

func newModel(ctx context.Context, o Options, t *theme, g *glyphs) *model {
	m := &model{ctx: ctx, o: o, theme: t, glyphs: g, now: time.Now, w: 80, h: 24, dirty: true, mark: -1, mouse: o.Mouse, store: o.Annotations}
	if m.store == nil {
		m.store = protocol.NewAnnotationsStore(protocol.Annotations{})
	}
	m.bindings = slices.DeleteFunc(newBindings(), func(b binding) bool { return b.needs != nil && !b.needs(o) })
	for i := range m.bindings {
		on := m.bindings[i].on
		if m.byKey[on] == nil {
			m.byKey[on] = map[string]*binding{}
		}
		for _, k := range m.bindings[i].keys {
			m.byKey[on][k] = &m.bindings[i]
		}
	}
	return m
}

func (m *model) Init() tea.Cmd {
	m.refresh()
	cmds := []tea.Cmd{m.tick(), m.watchContext}
	if m.o.Messages != nil {
		cmds = append(cmds, m.nextMessage)
	}
	return tea.Batch(cmds...)
}

func (m *model) tick() tea.Cmd {
	return tea.Tick(tickEvery, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// watchContext and nextMessage are commands: Bubble Tea runs each in a
// goroutine, and the end of ctx ends them.
func (m *model) watchContext() tea.Msg {
	<-m.ctx.Done()
	return endedMsg{}
}

func (m *model) nextMessage() tea.Msg {
	select {
	case <-m.ctx.Done():
		return nil
	case msg, ok := <-m.o.Messages:
		if !ok {
			return nil
		}
		return msg
	}
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tickMsg:
		m.refresh()
		return m, m.tick()
	case Msg:
		if msg.Kind != MsgWake && msg.Text != "" {
			m.say(msg.Text, map[bool]role{true: roleBad, false: roleWarn}[msg.Kind == MsgError])
		}
		m.refresh()
		return m, m.nextMessage
	case endedMsg:
		return m, tea.Quit
	case tea.WindowSizeMsg:
		// Under tmux the first size can be 0x0.
		if m.w, m.h = msg.Width, msg.Height; m.w <= 0 || m.h <= 0 {
			m.w, m.h = 80, 24
		}
		m.dirty = true
	case tea.KeyMsg:
		return m, m.key(msg)
	case tea.MouseMsg:
		return m, m.click(msg)
	case exportedMsg:
		m.exported(msg)
	case wireSavedMsg:
		m.wireSaved(msg)
	case tea.ResumeMsg:
		m.dirty = true
	}
	return m, nil
}

// key does what a key is bound to. Keys that come in quick succession can
// arrive as one message with all their runes.
func (m *model) key(msg tea.KeyMsg) tea.Cmd {
	if m.entry != nil && msg.Type != tea.KeyCtrlC {
		m.dirty = true
		return m.entryKey(msg)
	}
	if msg.Paste {
		return nil
	}
	names := []string{msg.String()}
	if msg.Type == tea.KeyRunes && !msg.Alt {
		names = names[:0]
		for _, r := range msg.Runes {
			names = append(names, string(r))
		}
	}
	var cmds []tea.Cmd
	for i, name := range names {
		if m.entry != nil { // a key before has begun it: the rest is text
			cmds = append(cmds, m.entryKey(tea.KeyMsg{Type: tea.KeyRunes, Runes: msg.Runes[i:]}))
			break
		}
		if m.pick != nil && name != "ctrl+c" {
			m.dirty = true
			cmds = append(cmds, m.pickKey(name))
			continue
		}
		if b := m.bound(name); b != nil {
			m.dirty = true
			if name != "q" && name != "Q" {
				m.asked = false
			}
			if b.digits {
				m.selectLane(m.board(), int(name[0]-'1'))
				continue
			}
			cmds = append(cmds, b.do(m))
		}
	}
	return tea.Batch(cmds...)
}

// refresh takes the newest snapshot, and finds out whether the screen looks
// different.
func (m *model) refresh() {
	dirty, notice := m.dirty, m.notice
	m.refreshTimeline()
	if m.wire != nil { // nothing else is seen then
		m.dirty = m.wire.look(m.o.Wire, m.now()) || dirty || m.notice != notice
	}
}

func (m *model) refreshTimeline() {
	s, now := m.o.Snapshot(), m.now()
	if !sameState(s, m.state) {
		m.dirty = true
	}
	m.state = s
	if _, revision := m.store.Load(); revision != m.revision {
		m.revision, m.dirty = revision, true
	}
	m.settle(now)
	if elapsed := m.elapsedAt(now); elapsed != m.elapsed {
		m.elapsed, m.dirty = elapsed, true
	}
	if m.notice != "" && now.Sub(m.noticeAt) > noticeTime {
		m.notice, m.dirty = "", true
	}
	switch peak := s.Level.Peak; {
	case peak >= m.peak:
		if peak > m.peak {
			m.dirty = true
		}
		m.peak, m.peakAt = peak, now
	case now.Sub(m.peakAt) > peakHold:
		m.peak, m.peakAt, m.dirty = peak, now, true
	}
}

// settle takes over the counters once a second, or at once when something
// happened that people must see: digits that run are a restless sight.
func (m *model) settle(now time.Time) {
	s, c := m.state, m.calm
	if at := now.Unix(); at != m.calmAt || s.Link != c.Link || s.Finished != c.Finished || s.Dropped != c.Dropped || s.Overflows != c.Overflows {
		if c.ChunksSent != s.ChunksSent || c.Ahead != s.Ahead {
			m.dirty = true
		}
		m.calm, m.calmAt = s, at
	}
}

func (m *model) elapsedAt(now time.Time) time.Duration {
	switch {
	case m.state.Started.IsZero():
		return 0
	case m.state.Finished:
		return m.elapsed // stands still
	}
	return max(now.Sub(m.state.Started), 0).Truncate(time.Second)
}

func (m *model) layout() layout { return newLayout(m.w, m.h, m.board().State) }

func (m *model) window() window {
	b := m.board()
	return m.view.window(newLayout(m.w, m.h, b.State).cells(), b.Heard)
}

// say shows a line for a while.
func (m *model) say(text string, r role) {
	m.notice, m.noticeRole, m.noticeAt, m.dirty = Clean(text), r, m.now(), true
}

func (m *model) toggleFreeze() {
	if m.frozen != nil {
		m.frozen = nil
		m.view.back = false
		return
	}
	s := m.state
	m.frozen = &s
}

func (m *model) toStart() {
	w := m.window()
	m.view.scroll(w, -w.heard)
}

// leave ends the display, and asks first where something would be lost.
func (m *model) leave() tea.Cmd {
	if m.store.Unsaved() && !m.asked {
		m.asked = true
		text := "names and bookmarks are not kept: q again leaves"
		if m.o.Export != nil {
			text += ", e exports"
		}
		m.say(text, roleWarn)
		return nil
	}
	return m.quit()
}

// quit and interrupt end the display; which of them it was, Run tells.
func (m *model) quit() tea.Cmd {
	if !m.left && m.o.Interrupt != nil {
		m.o.Interrupt()
	}
	m.left = true
	return tea.Quit
}

func (m *model) interrupt() tea.Cmd {
	m.interrupted = true
	return m.quit()
}

// View draws only when something has changed: Bubble Tea asks after every
// message.
func (m *model) View() string {
	if m.dirty {
		m.cached, m.dirty = m.draw(), false
		m.drawn++
	}
	return m.cached
}

// sameState says whether two snapshots look the same.
func sameState(a, b State) bool {
	return a.Heard == b.Heard && a.Sent == b.Sent && a.Length == b.Length && a.Latency == b.Latency &&
		a.Level == b.Level && a.Source == b.Source && a.SourceNotice == b.SourceNotice && a.Server == b.Server &&
		a.Link == b.Link && a.LinkReason == b.LinkReason && sameRetry(a.Retry, b.Retry) && len(a.Fresh) == len(b.Fresh) && a.ChunksSent == b.ChunksSent && a.Dropped == b.Dropped &&
		a.Overflows == b.Overflows && a.Ahead == b.Ahead && a.Started.Equal(b.Started) && a.Finished == b.Finished &&
		a.Stream == b.Stream && a.Watching == b.Watching &&
		len(a.Levels) == len(b.Levels) && slices.Equal(a.Gaps, b.Gaps) && samePlayback(a.Playback, b.Playback) &&
		a.Timeline.Decided == b.Timeline.Decided && a.Timeline.Counts == b.Timeline.Counts && sameLanes(a.Timeline.Lanes, b.Timeline.Lanes)
}

func sameRetry(a, b *Retry) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func samePlayback(a, b *Playback) bool {
	return a == b || a != nil && b != nil && *a == *b
}
