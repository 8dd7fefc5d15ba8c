package plain

import (
	"cmp"
	"fmt"
	"io"
	"sync"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/trace"
	"hubbub/tui/display"
)

// Accessible is the display for a screen reader: appended lines and nothing
// else. It reports each change once. Any goroutine may use it.
type Accessible struct {
	mu          sync.Mutex // guards the fields below, and each line
	w           io.Writer
	err         error
	annotations *protocol.AnnotationsStore
	wire        func() trace.Snapshot // nil = there is no connection
	microphones bool                  // there is a choice of them
	detail      detail

	stateMu  sync.Mutex     // guards the fields below
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

// NewAccessible writes to w.
func NewAccessible(w io.Writer) *Accessible { return &Accessible{w: w} }

// use makes the display use the names of a store, judge the connection by its
// records, and mention the command for another microphone if there is one.
func (a *Accessible) use(o CommandOptions) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.annotations, a.wire, a.microphones = o.Annotations, o.Wire, o.Microphones != nil
}

func (a *Accessible) setDetail(d detail) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.detail = d
}

func (a *Accessible) settings() (*protocol.AnnotationsStore, func() trace.Snapshot, detail) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.annotations, a.wire, a.detail
}

// Turn reports a finished turn, unless quiet: "SPEAKER_00, 0:01 to 0:03", with a
// colon and the text if there is one.
func (a *Accessible) Turn(t protocol.Turn) error {
	name := t.Speaker
	store, _, detail := a.settings()
	if detail == quiet {
		return a.failure()
	}
	if store != nil {
		annotations, _ := store.Load()
		owner := annotations.Owner(t)
		if name = annotations.Name(owner); name == owner && owner == t.Speaker {
			name = cmp.Or(t.Match, name)
		}
	}
	text := display.Clean(t.Text)
	if text != "" {
		text = ": " + text
	}
	return a.printf("%s, %s to %s%s", display.Clean(name), display.Clock(t.Start), display.Clock(t.End), text)
}

// Error reports a problem.
func (a *Accessible) Error(text string) error { return a.printf("Error: %s", display.Clean(text)) }

// Notice reports something worth knowing.
func (a *Accessible) Notice(text string) error { return a.printf("%s", display.Clean(text)) }

// State reports what is new since the last call: the source and its notice, the
// connection and its problems, who has begun to speak, lost audio, the end. It
// may be called at any rate.
func (a *Accessible) State(s display.State) error {
	a.stateMu.Lock()
	defer a.stateMu.Unlock()
	old, first := display.State{}, a.previous == nil
	if !first {
		old = *a.previous
	}
	store, wire, detail := a.settings()
	if wire != nil {
		status := wire().Status
		s.Health, _ = status.Health(time.Now(), s.Latency)
	}
	a.previous = &s
	if s.Source != "" && s.Source != old.Source {
		if s.Watching {
			_ = a.printf("Watching %s. There is no sound here.", display.Clean(s.Source))
		} else {
			_ = a.printf("Listening to %s.", display.Clean(s.Source))
		}
	}
	if s.SourceNotice != "" && s.SourceNotice != old.SourceNotice {
		_ = a.printf("Notice: %s.", display.Clean(s.SourceNotice))
	}
	if s.InputProblem != "" && s.InputProblem != old.InputProblem {
		stop := "" // after a question
		if s.InputLost {
			stop = "."
		}
		_ = a.printf("Warning: %s%s%s", display.Clean(s.InputProblem), stop, a.microphoneHint())
	}
	switch r, before := s.Recording, old.Recording; {
	case r == nil:
	case r.Stopped != "" && (before == nil || before.Stopped == ""):
		_ = a.printf("Warning: %s.", display.Clean(r.Stopped))
	case before == nil:
		free := ""
		if r.Free > 0 {
			free = ", " + display.Bytes(r.Free) + " free"
		}
		_ = a.printf("Recording%s.", free)
	}
	if first || s.Conn != old.Conn || s.ConnReason != old.ConnReason && s.Conn != display.Reconnecting || s.Server != old.Server {
		_ = a.printf("%s", connSentence(s))
	}
	if s.Stream != old.Stream && s.Stream != "" && !s.Watching {
		_ = a.printf("Others watch it as stream %s.", display.Clean(s.Stream))
	}
	if s.Dropped > old.Dropped {
		_ = a.printf("Warning: %s dropped, %d in all.", display.Count(s.Dropped-old.Dropped, "chunk"), s.Dropped)
	}
	if s.Overflows > old.Overflows {
		_ = a.printf("Warning: the device lost audio %s.", display.Times(s.Overflows-old.Overflows))
	}
	if s.Dropped == old.Dropped { // else it is still going on
		a.reportGaps(s)
	}
	a.reportHealth(old, s, detail)
	with := display.NewSession(s, store)
	a.reportRecognised(with)
	a.reportSpeaking(with, detail)
	if s.Finished && !old.Finished {
		_ = a.printf("Finished after %s.", display.Clock(s.Position))
	}
	return a.failure()
}

// microphoneHint follows what is wrong with a microphone.
func (a *Accessible) microphoneHint() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.microphones {
		return " Microphone lists others."
	}
	return ""
}

// reportGaps reports audio that never reached the service.
func (a *Accessible) reportGaps(s display.State) {
	for _, g := range s.Gaps {
		if from := max(g.Start, a.gapsEnd); g.End-from > 0.05 {
			_ = a.printf("Warning: %.1f seconds from %s on never reached the service.", g.End-from, display.Clock(from))
			a.gapsEnd = g.End
		}
	}
}

// reportHealth reports when the service becomes late, slow or silent, and when
// that is over.
func (a *Accessible) reportHealth(old, s display.State, detail detail) {
	switch h, before := s.Health, old.Health; {
	case !s.Connected():
	case h.Cause != before.Cause && h.Cause != "":
		_ = a.printf("Warning: %s: %s.", h.Problem, h.Cause)
	case h.Cause == "" && before.Cause != "":
		_ = a.printf("The service is on time again.")
	case detail == verbose && h.Lag > 0 && (h.Lag-a.lag).Abs() >= time.Second:
		a.lag = h.Lag
		_ = a.printf("Lag %.1f seconds.", h.Lag.Seconds())
	}
}

// reportRecognised reports who was recognised since the last call, and who no
// longer is.
func (a *Accessible) reportRecognised(s *display.Session) {
	for _, p := range s.Speakers {
		switch before := a.matches[p.Label]; {
		case p.Recognised && p.Name != before:
			if a.matches == nil {
				a.matches = map[string]string{}
			}
			a.matches[p.Label] = p.Name
			_ = a.printf("%s is recognised as %s.", display.Clean(p.Label), p.Name)
		case p.Name == p.Label && before != "": // another name is a typed one
			delete(a.matches, p.Label)
			_ = a.printf("%s is no longer recognised as %s.", display.Clean(p.Label), before)
		}
	}
}

// reportSpeaking reports who has begun to speak since the last call.
func (a *Accessible) reportSpeaking(s *display.Session, detail detail) {
	speaking := map[string]bool{}
	for _, p := range s.Speakers {
		if !s.Speaking(p) {
			continue
		}
		speaking[p.Label] = true
		if !a.speaking[p.Label] && !p.Muted && detail != quiet {
			_ = a.printf("%s is speaking.", p.Name)
		}
	}
	a.speaking = speaking
}

// Summary is the summary in sentences: bars and columns mean nothing to a
// screen reader.
func (a *Accessible) Summary(s display.State) error {
	all := display.NewSession(s, a.names())
	_ = a.printf("%s of audio, %s.", display.Clock(s.Position), display.Count(int64(len(all.Speakers)), "speaker"))
	for _, p := range all.Speakers {
		share := fmt.Sprintf("%.0f percent", 100*p.Share)
		if p.Muted {
			share = "muted"
		}
		_ = a.printf("%s: %s, %s, %s.", p.Name, display.TalkText(p.TalkTime), share, display.Count(int64(p.TurnCount), "turn"))
	}
	if s.Dropped > 0 {
		_ = a.printf("Warning: %s dropped, %.1f seconds of audio never reached the server.", display.Count(s.Dropped, "chunk"), 0.1*float64(s.Dropped))
	}
	return a.failure()
}

func (a *Accessible) names() *protocol.AnnotationsStore {
	store, _, _ := a.settings()
	return store
}

// connSentence is the state of the connection as a sentence.
func connSentence(s display.State) string {
	server := display.Clean(s.Server)
	if server == "" {
		server = "the server"
	}
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
		text += ": " + display.Clean(s.ConnReason)
	}
	return text + "."
}

// printf writes a line with one write. After the first failure nothing is
// written.
func (a *Accessible) printf(format string, args ...any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		_, err := fmt.Fprintf(a.w, format+"\n", args...)
		a.err = OutputError(err)
	}
	return a.err
}

// failure is the first failure of the output.
func (a *Accessible) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}
