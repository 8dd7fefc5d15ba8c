package tui

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"hubbub/protocol"
)

// ErrQuit is what Console.Do answers when the session is to be left.
var ErrQuit = errors.New("quit")

// ConsoleOptions are what the commands of a Console act on. Their meaning is
// that of Options.
type ConsoleOptions struct {
	Snapshot    func() State
	Annotations *protocol.AnnotationsStore
	Export      func(protocol.Annotations) (string, error)
	Player      Player
	Wire        func() protocol.WireSnapshot
}

// Console is the accessible display's command line: words and a line of answer
// for each. It does what the keys of the screen do. It is for one goroutine.
type Console struct {
	out   *Accessible
	o     ConsoleOptions
	asked bool // quit has asked whether what is not kept may go
}

// NewConsole answers on out, and has it call people by their names.
func NewConsole(out *Accessible, o ConsoleOptions) *Console {
	if o.Annotations == nil {
		o.Annotations = protocol.NewAnnotationsStore(protocol.Annotations{})
	}
	out.Annotate(o.Annotations)
	return &Console{out: out, o: o}
}

// command is one word that the console knows. The table below is the only
// place that knows them: Do and help read it.
type command struct {
	words []string // the first one is in the help
	args  string   // as the help shows them
	help  string
	needs func(ConsoleOptions) bool // nil = always there
	do    func(c *Console, args string) error
}

func commands() []command {
	player := func(o ConsoleOptions) bool { return o.Player != nil }
	return []command{
		{words: []string{"help", "?", "h"}, help: "says all commands", do: (*Console).help},
		{words: []string{"who", "w"}, help: "says who is there, with their numbers, and who is speaking", do: (*Console).who},
		{words: []string{"last", "l"}, args: "[COUNT]", help: "says the latest turns, five of them or COUNT", do: (*Console).last},
		{words: []string{"status", "s"}, help: "says how the connection and the sound are", do: (*Console).status},
		{words: []string{"wire"}, args: "[COUNT]", help: "says how the wire is, and its latest messages, five of them or COUNT", needs: func(o ConsoleOptions) bool { return o.Wire != nil }, do: (*Console).wire},
		{words: []string{"name", "rename"}, args: "WHO NAME", help: "names a person; WHO is a number, a label or a name", do: (*Console).name},
		{words: []string{"merge"}, args: "WHO WHOM", help: "makes two one person, who is called as the second", do: (*Console).merge},
		{words: []string{"mute"}, args: "WHO", help: "leaves a person out of the shares, or takes them in again", do: (*Console).mute},
		{words: []string{"mark", "bookmark", "b"}, args: "[NOTE]", help: "sets a bookmark at the present", do: (*Console).mark},
		{words: []string{"marks", "bookmarks"}, help: "says all bookmarks", do: (*Console).marks},
		{words: []string{"undo", "u"}, help: "takes the newest change back", do: (*Console).undo},
		{words: []string{"export", "e"}, help: "writes the session into files", needs: func(o ConsoleOptions) bool { return o.Export != nil }, do: (*Console).export},
		{words: []string{"pause", "play", "p"}, help: "stops the recording, or goes on", needs: player, do: (*Console).pause},
		{words: []string{"seek", "go"}, args: "TIME", help: "goes to a time of the recording, 1:30 or 90", needs: player, do: (*Console).seek},
		{words: []string{"faster"}, help: "plays twice as fast", needs: player, do: func(c *Console, _ string) error { c.o.Player.Faster(1); return c.say("Faster.") }},
		{words: []string{"slower"}, help: "plays half as fast", needs: player, do: func(c *Console, _ string) error { c.o.Player.Faster(-1); return c.say("Slower.") }},
		{words: []string{"quit", "q", "exit", "leave"}, help: "ends the session", do: (*Console).quit},
	}
}

// Do does what a line says and answers on the display. Its error is ErrQuit,
// or that of the output; a command that is wrong is no error.
func (c *Console) Do(line string) error {
	word, args, _ := strings.Cut(strings.TrimSpace(Clean(line)), " ")
	if word == "" {
		return nil
	}
	for _, k := range commands() {
		if k.needs != nil && !k.needs(c.o) {
			continue
		}
		for _, w := range k.words {
			if strings.EqualFold(w, word) {
				if k.words[0] != "quit" {
					c.asked = false
				}
				return k.do(c, strings.TrimSpace(args))
			}
		}
	}
	return c.say("There is no command %s. Type help for all of them.", word)
}

func (c *Console) say(format string, args ...any) error { return c.out.say(format, args...) }

func (c *Console) help(string) error {
	for _, k := range commands() {
		if k.needs == nil || k.needs(c.o) {
			_ = c.say("%s: %s.", strings.TrimSpace(k.words[0]+" "+k.args), k.help)
		}
	}
	return c.out.failed()
}

// board is the present with its annotations.
func (c *Console) board() *board {
	return annotated(c.o.Snapshot(), c.o.Annotations)
}

func (c *Console) who(string) error {
	b := c.board()
	if len(b.people) == 0 {
		return c.say("Nobody has spoken yet.")
	}
	for i, p := range b.people {
		text := fmt.Sprintf("%d: %s, %s, %.0f percent, %s", i+1, p.name, talkTime(p.talk), 100*p.share, count(int64(p.turns), "turn"))
		if p.muted {
			text = fmt.Sprintf("%d: %s, muted, %s, %s", i+1, p.name, talkTime(p.talk), count(int64(p.turns), "turn"))
		}
		if b.Timeline.Lanes[i].Open && !b.Finished {
			text += ", speaking now"
		}
		_ = c.say("%s.", text)
	}
	return c.out.failed()
}

func (c *Console) last(args string) error {
	n := 5
	if args != "" {
		var err error
		if n, err = strconv.Atoi(args); err != nil || n < 1 || n > 1000 {
			return c.say("%s is not a number from 1 to 1000.", args)
		}
	}
	b := c.board()
	b.marks = nil
	turns := latest(b, n)
	if len(turns) == 0 {
		return c.say("No turn has ended yet.")
	}
	for i := len(turns) - 1; i >= 0; i-- { // the newest is said last
		_ = c.say("%s, %s to %s.", Clean(turns[i].turn.Speaker), clock(turns[i].turn.Start), clock(turns[i].turn.End))
	}
	return c.out.failed()
}

func (c *Console) status(string) error {
	s := c.o.Snapshot()
	_ = c.say("%s", linkSentence(s))
	text := fmt.Sprintf("%s heard from %s", clock(s.Heard), Clean(s.Source))
	if s.Length > 0 {
		text += " of " + clock(s.Length)
	}
	if s.Watching {
		_ = c.say("%s. Somebody else sends it: there is no sound here.", text)
	} else {
		_ = c.say("%s, %s dropped.", text, count(s.Dropped, "chunk"))
	}
	if s.Stream != "" && !s.Watching {
		_ = c.say("Others watch it as stream %s.", Clean(s.Stream))
	}
	if p := s.Playback; p != nil {
		_ = c.say("%s, %g times the speed of life.", map[bool]string{true: "Paused", false: "Playing"}[p.Paused], p.Speed)
	}
	if b := meterPart(s.Level.RMS); !s.Finished && !s.Watching {
		switch {
		case s.Level.Peak >= clipping:
			_ = c.say("The input is too loud.")
		case b < 0.1:
			_ = c.say("The input is silent now.")
		default:
			_ = c.say("The input is %.0f decibels below full scale.", (1-b)*-meterFloor)
		}
	}
	if c.o.Annotations.Unsaved() {
		_ = c.say("Names and bookmarks are not kept yet.")
	}
	return c.out.failed()
}

// find is the person that a number, a label or a name means, with as much of
// args as names them; names may have several words.
func (c *Console) find(b *board, args string) (p person, rest string, found bool) {
	word, rest, _ := strings.Cut(args, " ")
	if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(b.people) {
		return b.people[n-1], strings.TrimSpace(rest), true
	}
	best := 0
	for _, q := range b.people {
		for _, name := range []string{q.name, q.root} {
			n := len(name)
			if n > best && len(args) >= n && strings.EqualFold(args[:n], name) && (len(args) == n || args[n] == ' ') {
				p, rest, best, found = q, strings.TrimSpace(args[n:]), n, true
			}
		}
	}
	return p, rest, found
}

// nobody says that somebody was not found.
func (c *Console) nobody(args string) error {
	if args == "" {
		return c.say("Who? Say a number, a label or a name; who says them all.")
	}
	return c.say("There is nobody called %s; who says them all.", args)
}

func (c *Console) name(args string) error {
	b := c.board()
	p, name, found := c.find(b, args)
	switch {
	case !found:
		return c.nobody(args)
	case name == "":
		return c.say("Which name? Say name %s and the name.", p.name)
	}
	err := c.o.Annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename(p.root, name) })
	if err != nil {
		return c.say("Not done: %s.", err)
	}
	return c.say("%s is now %s.", p.name, c.board().name(p.root))
}

func (c *Console) merge(args string) error {
	b := c.board()
	from, rest, found := c.find(b, args)
	if !found {
		return c.nobody(args)
	}
	rest = strings.TrimSpace(strings.TrimPrefix(rest, "into "))
	into, more, found := c.find(b, rest)
	if !found || more != "" {
		return c.nobody(rest)
	}
	if from.root == into.root {
		return c.say("%s is one person already.", from.name)
	}
	if err := c.o.Annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Merge(from.root, into.root) }); err != nil {
		return c.say("Not done: %s.", err)
	}
	return c.say("Merged %s into %s. Undo takes it back.", from.name, c.board().name(into.root))
}

func (c *Console) mute(args string) error {
	p, rest, found := c.find(c.board(), args)
	if !found || rest != "" {
		return c.nobody(args)
	}
	_ = c.o.Annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Mute(p.root, !p.muted), nil })
	return c.say("%s %s.", p.name, map[bool]string{true: "counts again", false: "is left out"}[p.muted])
}

func (c *Console) mark(note string) error {
	at := c.o.Snapshot().Heard
	if err := c.o.Annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(at, note) }); err != nil {
		return c.say("Not done: %s.", err)
	}
	return c.say("Bookmark at %s.", clock(at))
}

func (c *Console) marks(string) error {
	a, _ := c.o.Annotations.Load()
	if len(a.Bookmarks()) == 0 {
		return c.say("There are no bookmarks.")
	}
	for _, k := range a.Bookmarks() {
		_ = c.say("%s", strings.TrimSpace(clock(k.At)+" "+Clean(k.Note)))
	}
	return c.out.failed()
}

func (c *Console) undo(string) error {
	was, is, ok := c.o.Annotations.Undo()
	if !ok {
		return c.say("There is nothing to undo.")
	}
	return c.say("Undone: %s.", difference(is, was))
}

func (c *Console) export(string) error {
	a, revision := c.o.Annotations.Load()
	text, err := c.o.Export(a)
	if err != nil {
		_ = c.out.Error(err.Error())
		var h interface{ Hint() string }
		if errors.As(err, &h) && h.Hint() != "" {
			_ = c.say("%s", Clean(h.Hint()))
		}
		return c.out.failed()
	}
	c.o.Annotations.MarkSaved(revision)
	return c.say("%s", Clean(text))
}

func (c *Console) pause(string) error {
	c.o.Player.TogglePause()
	if p := c.o.Snapshot().Playback; p != nil && p.Paused {
		return c.say("Paused.")
	}
	return c.say("Playing.")
}

func (c *Console) seek(args string) error {
	at, ok := parseClock(args)
	if !ok {
		return c.say("%q is no time; say 90, 1:30 or 1:02:03.", args)
	}
	c.o.Player.Seek(at)
	return c.say("At %s.", clock(at))
}

// parseClock reads seconds, m:ss or h:mm:ss.
func parseClock(text string) (seconds float64, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) > 3 {
		return 0, false
	}
	for i, p := range parts {
		v, err := strconv.ParseFloat(p, 64)
		if err != nil || !(v >= 0 && v <= protocol.MaxTimestamp) || i > 0 && v >= 60 || i < len(parts)-1 && v != math.Trunc(v) {
			return 0, false
		}
		seconds = seconds*60 + v
	}
	return seconds, true
}

func (c *Console) quit(string) error {
	if c.o.Annotations.Unsaved() && !c.asked {
		c.asked = true
		text := "Names and bookmarks are not kept. Quit again leaves without them"
		if c.o.Export != nil {
			text += ", export keeps them"
		}
		return c.say("%s.", text)
	}
	return ErrQuit
}
