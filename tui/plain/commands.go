package plain

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/tui/display"
	"hubbub/tui/wire"
)

// ErrQuit is what CommandLine.Run returns when the user quits.
var ErrQuit = errors.New("quit")

// CommandLine executes the commands of the accessible display: words, and a line
// of answer for each. They do what the keys of the screen do. It is for one
// goroutine.
type CommandLine struct {
	out       *Accessible
	o         display.Controls
	quitAsked bool            // quit has asked for confirmation
	offered   map[string]bool // labels whose voice the user was asked about
}

// NewCommandLine answers on out, and makes it use the names of o.Annotations.
func NewCommandLine(out *Accessible, o display.Controls) *CommandLine {
	if o.Annotations == nil {
		o.Annotations = protocol.NewAnnotationsStore(protocol.Annotations{})
	}
	out.use(o)
	return &CommandLine{out: out, o: o, offered: map[string]bool{}}
}

// command is one command. The table in commands is the only place that knows
// them: Run and help read it.
type command struct {
	words []string // the help shows the first
	args  string   // as the help shows them
	help  string
	needs func(display.Controls) bool // nil = always available
	do    func(c *CommandLine, args string) error
}

func (k command) available(o display.Controls) bool { return k.needs == nil || k.needs(o) }

func commands() []command {
	player := func(o display.Controls) bool { return o.Player != nil }
	return []command{
		{words: []string{"help", "?", "h"}, help: "lists all commands", do: (*CommandLine).help},
		{words: []string{"who", "w"}, help: "lists the speakers with their numbers, and who is speaking", do: (*CommandLine).who},
		{words: []string{"last", "l"}, args: "[COUNT]", help: "lists the latest turns, five or COUNT", do: (*CommandLine).last},
		{words: []string{"search", "find"}, args: "WORDS", help: "lists the turns and bookmarks with all these words", do: (*CommandLine).search},
		{words: []string{"status", "s"}, help: "reports the connection and the input level", do: (*CommandLine).status},
		{words: []string{"wire"}, args: "[COUNT]", help: "reports the connection in detail, with the latest messages, five or COUNT", needs: func(o display.Controls) bool { return o.Wire != nil }, do: (*CommandLine).wire},
		{words: []string{"name", "rename"}, args: "WHO NAME", help: "names a speaker; WHO is a number, a label or a name", do: (*CommandLine).name},
		{words: []string{"remember"}, args: "WHO", help: "learns the voice of a named speaker, so that later sessions recognise it", needs: func(o display.Controls) bool { return o.Memory != nil }, do: (*CommandLine).remember},
		{words: []string{"never"}, help: "never offers to remember a voice again", needs: func(o display.Controls) bool { return o.Memory != nil }, do: (*CommandLine).never},
		{words: []string{"merge"}, args: "WHO WHOM", help: "merges the first speaker into the second", do: (*CommandLine).merge},
		{words: []string{"move"}, args: "WHO TIME WHOM", help: "gives the turn of the first speaker at that time to the second", do: (*CommandLine).move},
		{words: []string{"mute"}, args: "WHO", help: "excludes a speaker from the shares, or includes them again", do: (*CommandLine).mute},
		{words: []string{"bookmark", "b", "mark"}, args: "[NOTE]", help: "sets a bookmark at the present position", do: (*CommandLine).bookmark},
		{words: []string{"bookmarks", "marks"}, help: "lists all bookmarks", do: (*CommandLine).bookmarks},
		{words: []string{"undo", "u"}, help: "reverts the newest change", do: (*CommandLine).undo},
		{words: []string{"export", "e"}, help: "writes the session into files", needs: func(o display.Controls) bool { return o.Export != nil }, do: (*CommandLine).export},
		{words: []string{"record", "rec"}, help: "starts a recording, or stops the one that runs", needs: func(o display.Controls) bool { return o.Record != nil }, do: (*CommandLine).record},
		{words: []string{"microphone", "mic"}, args: "[NUMBER]", help: "lists the microphones, or continues with another one", needs: func(o display.Controls) bool { return o.Microphones != nil }, do: (*CommandLine).microphone},
		{words: []string{"pause", "p"}, help: "pauses or resumes the recording", needs: player, do: (*CommandLine).pause},
		{words: []string{"play"}, help: "resumes the recording", needs: player, do: (*CommandLine).play},
		{words: []string{"seek", "go"}, args: "TIME", help: "goes to a position of the recording, 1:30 or 90", needs: player, do: (*CommandLine).seek},
		{words: []string{"faster"}, help: "doubles the speed", needs: player, do: faster(1)},
		{words: []string{"slower"}, help: "halves the speed", needs: player, do: faster(-1)},
		{words: []string{"quiet"}, help: "reports problems only, no turns", do: setDetail(quiet, "Quiet: problems only. Normal reports turns again.")},
		{words: []string{"normal"}, help: "reports who begins to speak, and finished turns", do: setDetail(normal, "Normal: turns and problems.")},
		{words: []string{"verbose"}, help: "reports changes of the lag as well", do: setDetail(verbose, "Verbose: turns, problems and lag.")},
		{words: []string{"quit", "q", "exit"}, help: "ends the session", do: (*CommandLine).quit},
	}
}

// Run executes a line and answers on the display. Its error is ErrQuit, or that
// of the output; a wrong command is no error.
func (c *CommandLine) Run(line string) error {
	word, args, _ := strings.Cut(strings.TrimSpace(display.TerminalSafe(line)), " ")
	if word == "" {
		return nil
	}
	for _, k := range commands() {
		if !slices.Contains(k.words, strings.ToLower(word)) || !k.available(c.o) {
			continue
		}
		if k.words[0] != "quit" {
			c.quitAsked = false
		}
		if err := k.do(c, strings.TrimSpace(args)); err != nil {
			return err
		}
		return c.correctVoices()
	}
	return c.printf("There is no command %s. Type help for all of them.", word)
}

func (c *CommandLine) printf(format string, args ...any) error { return c.out.printf(format, args...) }

func (c *CommandLine) session() *display.Session {
	return display.NewSession(c.o.Snapshot(), c.o.Annotations)
}

// setDetail is the command that chooses how much is reported unasked.
func setDetail(d detail, answer string) func(*CommandLine, string) error {
	return func(c *CommandLine, _ string) error {
		c.out.setDetail(d)
		return c.printf("%s", answer)
	}
}

func (c *CommandLine) help(string) error {
	for _, k := range commands() {
		if k.available(c.o) {
			_ = c.printf("%s: %s.", strings.TrimSpace(k.words[0]+" "+k.args), k.help)
		}
	}
	return c.out.failure()
}

func (c *CommandLine) who(string) error {
	s := c.session()
	if len(s.Speakers) == 0 {
		return c.printf("Nobody has spoken yet.")
	}
	for i, p := range s.Speakers {
		text := fmt.Sprintf("%d: %s, %s, %.0f percent, %s", i+1, p.Name, display.TalkText(p.TalkTime), 100*p.Share, display.Count(p.TurnCount, "turn"))
		if p.Muted {
			text = fmt.Sprintf("%d: %s, muted, %s, %s", i+1, p.Name, display.TalkText(p.TalkTime), display.Count(p.TurnCount, "turn"))
		}
		if s.Speaking(p) {
			text += ", speaking now"
		}
		_ = c.printf("%s.", text)
	}
	return c.out.failure()
}

// readCount reads the number of lines that a command is to print.
func (c *CommandLine) readCount(args string) (n int, err error) {
	if args == "" {
		return 5, nil
	}
	if n, err = strconv.Atoi(args); err != nil || n < 1 || n > 1000 {
		return 0, c.printf("%s is not a number from 1 to 1000.", args)
	}
	return n, nil
}

func (c *CommandLine) last(args string) error {
	n, err := c.readCount(args)
	if n == 0 {
		return err
	}
	s := c.session()
	s.Bookmarks = nil
	entries := s.Latest(n)
	if len(entries) == 0 {
		return c.printf("No turn has ended yet.")
	}
	for _, e := range slices.Backward(entries) { // the newest is last
		c.entry(s, e)
	}
	return c.out.failure()
}

// entry prints a turn or a bookmark.
func (c *CommandLine) entry(s *display.Session, e display.Entry) {
	line, text := "Bookmark, "+display.Clock(e.At), display.TerminalSafe(e.Note)
	if e.Lane >= 0 {
		line = fmt.Sprintf("%s, %s to %s", s.Speakers[e.Lane].Name, display.Clock(e.Turn.Start), display.Clock(e.Turn.End))
		text = display.TerminalSafe(e.Turn.Text)
	}
	if text == "" {
		_ = c.printf("%s.", line)
	} else {
		_ = c.printf("%s: %s", line, text)
	}
}

func (c *CommandLine) search(words string) error {
	if words == "" {
		return c.printf("Which words? Type search and the words.")
	}
	s, found := c.session(), 0
	for _, e := range slices.Backward(s.Latest(math.MaxInt)) {
		text := e.Note
		if e.Lane >= 0 {
			text = s.Speakers[e.Lane].Name + " " + e.Turn.Text
		}
		if display.HasWords(text, words) {
			c.entry(s, e)
			found++
		}
	}
	return c.printf("%s found.", display.Count(found, "result"))
}

func (c *CommandLine) status(string) error {
	s := c.o.Snapshot()
	if s.Playback == nil {
		_ = c.printf("%s", connSentence(s))
	}
	text := fmt.Sprintf("%s of audio from %s", display.Clock(s.Position), display.TerminalSafe(s.Source))
	if s.Length > 0 {
		text += " of " + display.Clock(s.Length)
	}
	switch {
	case s.Watching:
		_ = c.printf("%s. Somebody else sends it: there is no sound here.", text)
	case s.Playback != nil:
		_ = c.printf("%s.", text)
	default:
		_ = c.printf("%s, %s dropped.", text, display.Count(s.Dropped, "chunk"))
	}
	if r := s.Recording; r != nil && r.Stopped != "" {
		_ = c.printf("Warning: %s.", display.TerminalSafe(r.Stopped))
	} else if r != nil {
		_ = c.printf("Recording, %s, %s.", display.Clock(r.Length), display.Bytes(r.Bytes))
	}
	if s.InputProblem != "" && !s.Finished {
		_ = c.printf("%s", inputWarning(s))
	}
	if s.Stream != "" && !s.Watching {
		_ = c.printf("Others watch it as stream %s.", display.TerminalSafe(s.Stream))
	}
	if s.Page != "" {
		_ = c.printf("The page for an audience is at %s.", s.Page)
	}
	if p := s.Playback; p != nil {
		_ = c.printf("%s at %g times the original speed.", map[bool]string{true: "Paused", false: "Playing"}[p.Paused], p.Speed)
	}
	if level := display.ScaleDecibels(s.Level.RMS, display.MeterFloor, 0); !s.Finished && !s.Watching && (s.Playback == nil || len(s.Levels) > 0) { // a recording may have no audio
		switch {
		case s.Level.Peak >= display.Clipping:
			_ = c.printf("The input is too loud.")
		case level < 0.1:
			_ = c.printf("The input is silent now.")
		default:
			_ = c.printf("The input is %.0f decibels below full scale.", (1-level)*-display.MeterFloor)
		}
	}
	if c.o.Annotations.Unsaved() {
		_ = c.printf("Names and bookmarks are not saved yet.")
	}
	return c.out.failure()
}

// wire prints the state of the connection, then its latest messages and faults;
// chunks and pings are omitted.
func (c *CommandLine) wire(args string) error {
	n, err := c.readCount(args)
	if n == 0 {
		return err
	}
	s := c.o.Wire()
	for _, sentence := range wire.Sentences(s.Status, time.Now()) {
		_ = c.printf("%s", sentence)
	}
	for _, line := range wire.Latest(s, n) {
		_ = c.printf("%s", line)
	}
	return c.out.failure()
}

func (c *CommandLine) bookmark(note string) error {
	at := c.o.Snapshot().Position
	if err := c.o.Annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(at, note) }); err != nil {
		return c.refused(err)
	}
	return c.printf("Bookmark at %s.", display.Clock(at))
}

func (c *CommandLine) bookmarks(string) error {
	a, _ := c.o.Annotations.Load()
	if len(a.Bookmarks()) == 0 {
		return c.printf("There are no bookmarks.")
	}
	for _, k := range a.Bookmarks() {
		_ = c.printf("%s", strings.TrimSpace(display.Clock(k.At)+" "+display.TerminalSafe(k.Note)))
	}
	return c.out.failure()
}

func (c *CommandLine) undo(string) error {
	was, is, ok := c.o.Annotations.Undo()
	if !ok {
		return c.printf("There is nothing to undo.")
	}
	return c.printf("Undone: %s.", display.ChangeText(is, was))
}

func (c *CommandLine) export(string) error {
	a, revision := c.o.Annotations.Load()
	text, err := c.o.Export(a)
	if err != nil {
		return c.result("", err)
	}
	c.o.Annotations.MarkSaved(revision)
	return c.printf("%s", display.TerminalSafe(text))
}

// result answers what was done, if anything, or what went wrong and what to do.
func (c *CommandLine) result(text string, err error) error {
	switch next := hint.Of(err); {
	case err != nil:
		_ = c.out.Error(err.Error())
		if next != "" {
			_ = c.printf("%s", display.TerminalSafe(next))
		}
	case text != "":
		_ = c.printf("%s.", display.TerminalSafe(text))
	}
	return c.out.failure()
}

func (c *CommandLine) record(string) error {
	return c.result(c.o.Record())
}

// microphone lists the devices, and continues with the one of a number.
func (c *CommandLine) microphone(args string) error {
	list, err := c.o.Microphones.List()
	if err != nil {
		return c.result("", err)
	}
	if args == "" {
		for i, d := range list {
			text := fmt.Sprintf("%d: %s, %s", i+1, display.TerminalSafe(d.Name), display.TerminalSafe(d.System))
			if d.Used {
				text += ", in use"
			}
			_ = c.printf("%s.", text)
		}
		return c.out.failure()
	}
	n, err := strconv.Atoi(args)
	if err != nil || n < 1 || n > len(list) {
		return c.printf("%s is not the number of a microphone; microphone lists them.", args)
	}
	return c.result(c.o.Microphones.Use(list[n-1].Input))
}

func (c *CommandLine) pause(string) error {
	c.o.Player.TogglePause()
	if p := c.o.Snapshot().Playback; p != nil && p.Paused {
		return c.printf("Paused.")
	}
	return c.printf("Playing.")
}

func (c *CommandLine) play(string) error {
	if p := c.o.Snapshot().Playback; p != nil && p.Paused {
		return c.pause("")
	}
	return c.printf("Playing.")
}

// faster is the command that changes the speed by steps.
func faster(steps int) func(*CommandLine, string) error {
	return func(c *CommandLine, _ string) error {
		c.o.Player.Faster(steps)
		if p := c.o.Snapshot().Playback; p != nil {
			return c.printf("Speed %g.", p.Speed)
		}
		return nil
	}
}

func (c *CommandLine) seek(args string) error {
	at, ok := parseClock(args)
	if !ok {
		return c.noTime(args)
	}
	c.o.Player.Seek(at)
	return c.printf("At %s.", display.Clock(c.o.Snapshot().Position))
}

func (c *CommandLine) noTime(text string) error {
	return c.printf("%q is not a time; type 90, 1:30 or 1:02:03.", text)
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

func (c *CommandLine) quit(string) error {
	if c.o.Annotations.Unsaved() && !c.quitAsked {
		c.quitAsked = true
		text := "Names and bookmarks are not saved. Quit again discards them"
		if c.o.Export != nil {
			text += ", export saves them"
		}
		return c.printf("%s.", text)
	}
	return ErrQuit
}
