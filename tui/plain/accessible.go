package plain

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"hubbub/protocol"
	"hubbub/protocol/trace"
	"hubbub/tui/display"
)

// Accessible is the display for a screen reader: appended lines and nothing
// else. It reports each change once, and executes commands. Any goroutine may use it; Run
// is for one.
type Accessible struct {
	o display.Controls

	// Of Run.
	quitAsked bool            // quit has asked for confirmation
	offered   map[string]bool // labels whose voice the user was asked about

	mu     sync.Mutex // guards the fields below
	w      io.Writer
	err    error
	detail detail

	previous *display.State // nil = none yet
	speaking map[string]bool
	matches  map[string]string // recognised names that were reported, by label
	gapsEnd  float64           // up to where gaps were reported, in seconds
	lag      time.Duration     // the one that was reported last
}

// detail is how much is reported unasked.
type detail int

const (
	normal  detail = iota
	quiet          // no turns: problems, notices and answers only
	verbose        // also the lag, whenever it has changed by a second
)

// NewAccessible writes to w. Without annotations it has some of its own.
func NewAccessible(w io.Writer, o display.Controls) *Accessible {
	if o.Annotations == nil {
		o.Annotations = protocol.NewAnnotationsStore(protocol.Annotations{})
	}
	return &Accessible{o: o, w: w, offered: map[string]bool{}, matches: map[string]string{}}
}

// Redirect makes it write to w from now on, as to a terminal that edits a line being typed.
func (a *Accessible) Redirect(w io.Writer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.w = w
}

// Turn reports a finished turn, unless quiet: "SPEAKER_00, 0:01 to 0:03", with a
// colon and the text if there is one.
func (a *Accessible) Turn(t protocol.Turn) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.detail == quiet {
		return a.err
	}
	annotations, _ := a.o.Annotations.Load()
	owner := annotations.Owner(t)
	name := annotations.Name(owner)
	if name == owner && owner == t.Speaker {
		name = cmp.Or(t.Match, name)
	}
	text := t.Text
	if text != "" {
		text = ": " + text
	}
	return a.line("%s, %s to %s%s", name, display.Clock(t.Start), display.Clock(t.End), text)
}

// Error reports a problem.
func (a *Accessible) Error(text string) error {
	return a.printf("Error: %s", text)
}

// Notice reports something worth knowing, as a sentence. A file that it begins with keeps its name.
func (a *Accessible) Notice(text string) error {
	_, size := utf8.DecodeRuneInString(text)
	if word, _, _ := strings.Cut(strings.TrimSuffix(text, "."), " "); strings.ContainsAny(word, `./\`) {
		size = 0
	}
	return a.printf("%s%s", strings.ToUpper(text[:size]), text[size:])
}

// State reports what is new since the last call: the source and its notice, the
// connection and its problems, who has begun to speak, lost audio, the end. It
// may be called at any rate.
func (a *Accessible) State(s display.State) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	old, first := display.State{}, a.previous == nil
	if !first {
		old = *a.previous
	}
	if a.o.Wire != nil {
		s.SetHealth(a.o.Wire().Status.Health(time.Now(), s.Latency))
	}
	a.previous = &s
	a.reportInput(old, s)
	a.reportRecording(old.Recording, s.Recording)
	if s.Playback == nil && (first || s.Conn != old.Conn || s.ConnReason != old.ConnReason && s.Conn != display.Reconnecting || s.Server != old.Server) {
		_ = a.line("%s", connSentence(s))
	}
	if s.Stream != old.Stream && s.Stream != "" && !s.Watching {
		_ = a.line("Others can watch it as stream %s.", s.Stream)
	}
	if s.Dropped > old.Dropped {
		_ = a.line("Warning: %s dropped, %d in all.", display.Count(s.Dropped-old.Dropped, "chunk"), s.Dropped)
	}
	if s.Overflows > old.Overflows {
		_ = a.line("Warning: the device lost audio %s.", display.Times(s.Overflows-old.Overflows))
	}
	if s.Dropped == old.Dropped && !s.InputLost { // else it is still going on
		a.reportGaps(s)
	}
	a.reportHealth(old, s)
	with := display.NewSession(s, a.o.Annotations)
	a.reportRecognised(with)
	a.reportSpeaking(with)
	if s.Finished() && !old.Finished() {
		_ = a.line("Finished after %s.", display.Clock(s.Position))
	}
	return a.err
}

// reportInput reports where the audio comes from, and what is wrong with it.
func (a *Accessible) reportInput(old, s display.State) {
	if s.Source != "" && s.Source != old.Source {
		switch {
		case s.Watching:
			_ = a.line("Watching %s. There is no sound here.", s.Source)
		case s.Playback != nil:
			_ = a.line("Replaying %s.", s.Source)
		default:
			_ = a.line("Listening to %s.", s.Source)
		}
	}
	if s.SourceNotice != "" && s.SourceNotice != old.SourceNotice {
		_ = a.line("Notice: %s.", s.SourceNotice)
	}
	if s.InputProblem != "" && s.InputProblem != old.InputProblem {
		text := inputWarning(s)
		if a.o.Microphones != nil {
			text += " Microphone lists others."
		}
		_ = a.line("%s", text)
	}
}

// reportRecording reports that a recording has begun, or failed.
func (a *Accessible) reportRecording(before, r *display.Recording) {
	switch {
	case r == nil:
	case r.Stopped != "" && (before == nil || before.Stopped == ""):
		_ = a.line("Warning: %s.", r.Stopped)
	case before == nil:
		free := ""
		if r.Free > 0 {
			free = ", " + display.Bytes(r.Free) + " free"
		}
		_ = a.line("Recording%s.", free)
	}
}

func inputWarning(s display.State) string {
	text := "Warning: " + s.InputProblem
	if s.InputLost { // else it is a question
		text += "."
	}
	return text
}

// reportGaps reports stretches whose speakers are unknown.
func (a *Accessible) reportGaps(s display.State) {
	for _, g := range s.Gaps {
		if s.Playback != nil && !s.Finished() && g.End >= s.Position { // the replay is inside it
			continue
		}
		if from := max(g.Start, a.gapsEnd); g.End-from > 0.05 {
			_ = a.line("Warning: for %.1f seconds from %s on the speakers are unknown.", g.End-from, display.Clock(from))
			a.gapsEnd = g.End
		}
	}
}

// reportHealth reports when the service becomes late, slow or silent, and when
// that is over.
func (a *Accessible) reportHealth(old, s display.State) {
	switch h, before := s.Health, old.Health; {
	case !s.Connected(), h == (trace.Health{}): // without a stream, it is not on time
	case h.Cause != before.Cause && h.Cause != "":
		_ = a.line("Warning: %s: %s.", h.Problem, h.Cause)
	case h.Cause == "" && before.Cause != "":
		_ = a.line("The service is on time again.")
	case a.detail == verbose && h.Lag > 0 && (h.Lag-a.lag).Abs() >= time.Second:
		a.lag = h.Lag
		_ = a.line("Lag %.1f seconds.", h.Lag.Seconds())
	}
}

// reportRecognised reports who was recognised since the last call, and who no
// longer is.
func (a *Accessible) reportRecognised(s *display.Session) {
	for _, p := range s.Speakers {
		switch before := a.matches[p.Label]; {
		case p.Recognised && p.Name != before:
			a.matches[p.Label] = p.Name
			_ = a.line("%s is recognised as %s.", p.Label, p.Name)
		case p.Name == p.Label && before != "": // another name is a typed one
			delete(a.matches, p.Label)
			_ = a.line("%s is no longer recognised as %s.", p.Label, before)
		}
	}
}

// reportSpeaking reports who has begun to speak since the last call.
func (a *Accessible) reportSpeaking(s *display.Session) {
	speaking := map[string]bool{}
	for _, p := range s.Speakers {
		if !s.Speaking(p) {
			continue
		}
		speaking[p.Label] = true
		if !a.speaking[p.Label] && !p.Muted && a.detail != quiet {
			_ = a.line("%s is speaking.", p.Name)
		}
	}
	a.speaking = speaking
}

// Summary is the summary in sentences: bars and columns mean nothing to a
// screen reader.
func (a *Accessible) Summary(s display.State) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := display.NewSession(s, a.o.Annotations)
	_ = a.line("%s of audio, %s.", display.Clock(s.Position), display.Count(len(all.Speakers), "speaker"))
	for _, p := range all.Speakers {
		share := fmt.Sprintf("%.0f percent", 100*p.Share)
		if p.Muted {
			share = "muted"
		}
		_ = a.line("%s: %s, %s, %s.", p.Name, display.TalkText(p.TalkTime), share, display.Count(p.TurnCount, "turn"))
	}
	return a.err
}

func connSentence(s display.State) string {
	server := cmp.Or(s.Server, "the server")
	text := ""
	switch s.Conn {
	case display.Connecting:
		text = "Connecting to " + server
	case display.Open:
		text = "Connected to " + server
	case display.Reconnecting:
		text = "Connection to " + server + " lost, trying to get it back"
	case display.Draining:
		text = "Input ended, waiting for the last turns"
	case display.Closed:
		text = "Connection closed"
	default:
		text = "Connection failed"
	}
	if s.ConnReason != "" {
		text += ": " + s.ConnReason
	}
	return text + "."
}

func (a *Accessible) printf(format string, args ...any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.line(format, args...)
}

// line writes a line with one write, while mu is locked. What comes from a network or a file
// is made safe for a terminal here. After the first failure nothing is written.
func (a *Accessible) line(format string, args ...any) error {
	if a.err == nil {
		_, a.err = io.WriteString(a.w, display.TerminalSafe(fmt.Sprintf(format, args...))+"\n")
	}
	return a.err
}

// failure is the first failure of the output.
func (a *Accessible) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}
