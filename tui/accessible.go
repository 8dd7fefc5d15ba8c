package tui

import (
	"fmt"
	"io"
	"sync"

	"hubbub/protocol"
)

// Accessible is the display for a screen reader: appended lines and nothing
// else. It says each thing once, when it changes. Any goroutine may use it.
type Accessible struct {
	mu      sync.Mutex // guards what follows, and each line
	w       io.Writer
	err     error
	notes   *protocol.AnnotationsStore
	seenMu  sync.Mutex // guards what follows
	seen    State
	started bool
}

// NewAccessible writes to w.
func NewAccessible(w io.Writer) *Accessible { return &Accessible{w: w} }

// Annotate has people called by the names that a store gives them.
func (a *Accessible) Annotate(store *protocol.AnnotationsStore) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notes = store
}

func (a *Accessible) annotations() protocol.Annotations {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.notes == nil {
		return protocol.Annotations{}
	}
	notes, _ := a.notes.Load()
	return notes
}

// Turn says a finished turn: "SPEAKER_00, 0:01 to 0:03".
func (a *Accessible) Turn(t protocol.Turn) error {
	return a.say("%s, %s to %s", Clean(a.annotations().Name(t.Speaker)), clock(t.Start), clock(t.End))
}

// Error says a problem.
func (a *Accessible) Error(text string) error { return a.say("Error: %s", Clean(text)) }

// Notice says something worth knowing.
func (a *Accessible) Notice(text string) error { return a.say("%s", Clean(text)) }

// State says what is new since the last call: the source and its notice, the
// connection, lost audio, the end. It may be called as often as one likes.
func (a *Accessible) State(s State) error {
	a.seenMu.Lock()
	defer a.seenMu.Unlock()
	old, first := a.seen, !a.started
	a.seen, a.started = s, true
	if s.Source != "" && s.Source != old.Source {
		if s.Watching {
			_ = a.say("Watching %s. There is no sound here.", Clean(s.Source))
		} else {
			_ = a.say("Listening to %s.", Clean(s.Source))
		}
	}
	if s.SourceNotice != "" && s.SourceNotice != old.SourceNotice {
		_ = a.say("Notice: %s.", Clean(s.SourceNotice))
	}
	if first || s.Link != old.Link || s.LinkReason != old.LinkReason && s.Link != Reconnecting || s.Server != old.Server {
		_ = a.say("%s", linkSentence(s))
	}
	if s.Stream != old.Stream && s.Stream != "" && !s.Watching {
		_ = a.say("Others watch it as stream %s.", Clean(s.Stream))
	}
	if s.Dropped > old.Dropped {
		_ = a.say("Warning: %s dropped, %d in all.", count(s.Dropped-old.Dropped, "chunk"), s.Dropped)
	}
	if s.Overflows > old.Overflows {
		_ = a.say("Warning: the device lost audio %s.", times(s.Overflows-old.Overflows))
	}
	if s.Finished && !old.Finished {
		_ = a.say("Finished after %s.", clock(s.Heard))
	}
	return a.failed()
}

// Summary says what remains of a session, in sentences: a bar or a column
// says nothing to the ear.
func (a *Accessible) Summary(s State) error {
	b := annotated(s, protocol.NewAnnotationsStore(a.annotations()))
	_ = a.say("%s heard, %s.", clock(s.Heard), count(int64(len(b.people)), "speaker"))
	for _, p := range b.people {
		share := fmt.Sprintf("%.0f percent", 100*p.share)
		if p.muted {
			share = "muted"
		}
		_ = a.say("%s: %s, %s, %s.", p.name, talkTime(p.talk), share, count(int64(p.turns), "turn"))
	}
	if s.Dropped > 0 {
		_ = a.say("Warning: %s dropped, %.1f seconds of audio never reached the server.", count(s.Dropped, "chunk"), 0.1*float64(s.Dropped))
	}
	return a.failed()
}

func linkSentence(s State) string {
	server := Clean(s.Server)
	if server == "" {
		server = "the server"
	}
	text := ""
	switch s.Link {
	case Connecting:
		text = "Connecting to " + server
	case Open:
		text = "Connected to " + server
	case Reconnecting:
		text = "Connection to " + server + " lost, trying to get it back"
	case Draining:
		text = "Input ended, waiting for the last turns"
	case Closed:
		text = "Connection closed"
	default:
		text = "Connection failed"
	}
	if s.LinkReason != "" {
		text += ": " + Clean(s.LinkReason)
	}
	return text + "."
}

func (a *Accessible) say(format string, args ...any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		_, err := fmt.Fprintf(a.w, format+"\n", args...)
		a.err = outputError(err)
	}
	return a.err
}

// failed is the error of the output, if it has one.
func (a *Accessible) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// count is "1 chunk", "2 chunks".
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
