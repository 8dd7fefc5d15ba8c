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
	byKey    map[string]*binding
	now      func() time.Time

	w, h   int
	state  State  // the newest snapshot
	calm   State  // the snapshot whose counters are shown, of this second
	calmAt int64  // that second
	frozen *State // the snapshot that the timeline stays at, or nil
	view   viewport
	help   bool

	elapsed  time.Duration // wall clock since the session started, in whole seconds
	notice   string        // the newest Msg with a text, until noticeEnd
	isError  bool
	noticeAt time.Time
	peak     float32 // of the meter, held for a moment
	peakAt   time.Time

	interrupted bool
	left        bool // Interrupt was called

	dirty  bool
	cached string
	drawn  int // views that were really drawn, for tests
}

func newModel(ctx context.Context, o Options, t *theme, g *glyphs) *model {
	m := &model{ctx: ctx, o: o, theme: t, glyphs: g, now: time.Now, w: 80, h: 24, dirty: true}
	m.bindings = newBindings()
	m.byKey = map[string]*binding{}
	for i := range m.bindings {
		for _, k := range m.bindings[i].keys {
			m.byKey[k] = &m.bindings[i]
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
			m.notice, m.isError, m.noticeAt = Clean(msg.Text), msg.Kind == MsgError, m.now()
			m.dirty = true
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
	case tea.ResumeMsg:
		m.dirty = true
	}
	return m, nil
}

// key does what a key is bound to. Keys that come in quick succession can
// arrive as one message with all their runes.
func (m *model) key(msg tea.KeyMsg) tea.Cmd {
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
	for _, name := range names {
		if b := m.byKey[name]; b != nil {
			m.dirty = true
			cmds = append(cmds, b.do(m))
		}
	}
	return tea.Batch(cmds...)
}

// refresh takes the newest snapshot, and finds out whether it looks different.
func (m *model) refresh() {
	s, now := m.o.Snapshot(), m.now()
	if !sameState(s, m.state) {
		m.dirty = true
	}
	m.state = s
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

// shown is the snapshot that the timeline draws.
func (m *model) shown() State {
	if m.frozen != nil {
		return *m.frozen
	}
	return m.state
}

func (m *model) layout() layout { return newLayout(m.w, m.h, m.shown()) }

func (m *model) window() window { return m.view.window(m.layout().cells(), m.shown().Heard) }

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

// leave and interrupt end the display; which of them it was, Run tells.
func (m *model) leave() tea.Cmd {
	if !m.left && m.o.Interrupt != nil {
		m.o.Interrupt()
	}
	m.left = true
	return tea.Quit
}

func (m *model) interrupt() tea.Cmd {
	m.interrupted = true
	return m.leave()
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

// sameState says whether two snapshots look the same. The finished turns of a
// label only ever grow, so that their number tells.
func sameState(a, b State) bool {
	return a.Heard == b.Heard && a.Sent == b.Sent && a.Length == b.Length && a.Latency == b.Latency &&
		a.Level == b.Level && a.Source == b.Source && a.SourceNotice == b.SourceNotice && a.Server == b.Server &&
		a.Link == b.Link && a.LinkReason == b.LinkReason && a.ChunksSent == b.ChunksSent && a.Dropped == b.Dropped &&
		a.Overflows == b.Overflows && a.Ahead == b.Ahead && a.Started.Equal(b.Started) && a.Finished == b.Finished &&
		a.Timeline.Decided == b.Timeline.Decided && a.Timeline.Counts == b.Timeline.Counts &&
		slices.EqualFunc(a.Timeline.Lanes, b.Timeline.Lanes, func(x, y protocol.Lane) bool {
			return x.Speaker == y.Speaker && len(x.Turns) == len(y.Turns) && x.Open == y.Open && x.OpenSince == y.OpenSince && x.Talk == y.Talk
		})
}
