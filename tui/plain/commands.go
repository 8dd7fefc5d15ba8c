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

// The commands of the accessible display: words, and a line of answer for each. They do what
// the keys of the screen do.

// ErrQuit is what Run returns when the user quits.
var ErrQuit = errors.New("quit")

// command is one command. The table in commands is the only place that knows
// them: Run and help read it.
type command struct {
	words []string // the help shows the first
	args  string   // as the help shows them
	help  string
	needs func(display.Controls) bool // nil = always available
	do    func(a *Accessible, args string) error
}

func (k command) available(o display.Controls) bool { return k.needs == nil || k.needs(o) }

func commands() []command {
	player := func(o display.Controls) bool { return o.Player != nil }
	return []command{
		{words: []string{"help", "?", "h"}, help: "lists all commands", do: (*Accessible).help},
		{words: []string{"who", "w"}, help: "lists the speakers with their numbers, and who is speaking", do: (*Accessible).who},
		{words: []string{"last", "l"}, args: "[COUNT]", help: "lists the latest turns, five or COUNT", do: (*Accessible).last},
		{words: []string{"search", "find"}, args: "WORDS", help: "lists the turns and bookmarks with all these words", do: (*Accessible).search},
		{words: []string{"status", "s"}, help: "reports the connection and the input level", do: (*Accessible).status},
		{words: []string{"wire"}, args: "[COUNT]", help: "reports the connection in detail, with the latest messages, five or COUNT", needs: func(o display.Controls) bool { return o.Wire != nil }, do: (*Accessible).wire},
		{words: []string{"name", "rename"}, args: "WHO NAME", help: "names a speaker; WHO is a number, a label or a name", do: (*Accessible).name},
		{words: []string{"remember"}, args: "WHO", help: "learns the voice of a named speaker, so that later sessions recognise it", needs: func(o display.Controls) bool { return o.Memory != nil }, do: (*Accessible).remember},
		{words: []string{"never"}, help: "never offers to remember a voice again", needs: func(o display.Controls) bool { return o.Memory != nil }, do: (*Accessible).never},
		{words: []string{"merge"}, args: "WHO WHOM", help: "merges the first speaker into the second", do: (*Accessible).merge},
		{words: []string{"move"}, args: "WHO TIME WHOM", help: "moves the turn of the first speaker at that time to the second", do: (*Accessible).move},
		{words: []string{"mute"}, args: "WHO", help: "excludes a speaker from the shares, or includes them again", do: (*Accessible).mute},
		{words: []string{"bookmark", "b", "mark"}, args: "[NOTE]", help: "sets a bookmark at the present position", do: (*Accessible).bookmark},
		{words: []string{"unbookmark", "unmark"}, args: "TIME", help: "removes the bookmark at that time", do: (*Accessible).unbookmark},
		{words: []string{"bookmarks", "marks"}, help: "lists all bookmarks", do: (*Accessible).bookmarks},
		{words: []string{"undo", "u"}, help: "reverts the newest change", do: (*Accessible).undo},
		{words: []string{"export", "e"}, help: "writes the session into files", needs: func(o display.Controls) bool { return o.Export != nil }, do: (*Accessible).export},
		{words: []string{"record", "rec"}, help: "starts a recording, or stops the one that runs", needs: func(o display.Controls) bool { return o.Record != nil }, do: (*Accessible).record},
		{words: []string{"microphone", "mic"}, args: "[NUMBER]", help: "lists the microphones, or continues with another one", needs: func(o display.Controls) bool { return o.Microphones != nil }, do: (*Accessible).microphone},
		{words: []string{"pause", "p"}, help: "pauses or resumes the recording", needs: player, do: (*Accessible).pause},
		{words: []string{"play"}, help: "resumes the recording", needs: player, do: (*Accessible).play},
		{words: []string{"seek", "go"}, args: "TIME", help: "goes to a position of the recording, 1:30 or 90", needs: player, do: (*Accessible).seek},
		{words: []string{"faster"}, help: "doubles the speed", needs: player, do: faster(1)},
		{words: []string{"slower"}, help: "halves the speed", needs: player, do: faster(-1)},
		{words: []string{"quiet"}, help: "reports problems only, no turns", do: setDetail(quiet, "Quiet: problems only. Normal reports turns again.")},
		{words: []string{"normal"}, help: "reports who begins to speak, and finished turns", do: setDetail(normal, "Normal: turns and problems.")},
		{words: []string{"verbose"}, help: "reports changes of the lag as well", do: setDetail(verbose, "Verbose: turns, problems and lag.")},
		{words: []string{"quit", "q", "exit"}, help: "ends the session", do: (*Accessible).quit},
	}
}

// Run executes a line and answers on the display. Its error is ErrQuit, or that
// of the output; a wrong command is no error.
func (a *Accessible) Run(line string) error {
	word, args, _ := strings.Cut(strings.TrimSpace(display.TerminalSafe(line)), " ")
	if word == "" {
		return nil
	}
	for _, k := range commands() {
		if !slices.Contains(k.words, strings.ToLower(word)) || !k.available(a.o) {
			continue
		}
		if k.words[0] != "quit" {
			a.quitAsked = false
		}
		if err := k.do(a, strings.TrimSpace(args)); err != nil {
			return err
		}
		return a.correctVoices()
	}
	return a.printf("There is no command %s. Type help for all of them.", word)
}

func (a *Accessible) session() *display.Session {
	return display.NewSession(a.o.Snapshot(), a.o.Annotations)
}

// setDetail is the command that chooses how much is reported unasked.
func setDetail(d detail, answer string) func(*Accessible, string) error {
	return func(a *Accessible, _ string) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.detail = d
		return a.line("%s", answer)
	}
}

func (a *Accessible) help(string) error {
	for _, k := range commands() {
		if k.available(a.o) {
			_ = a.printf("%s: %s.", strings.TrimSpace(k.words[0]+" "+k.args), k.help)
		}
	}
	return a.failure()
}

func (a *Accessible) who(string) error {
	s := a.session()
	if len(s.Speakers) == 0 {
		return a.printf("Nobody has spoken yet.")
	}
	for i, p := range s.Speakers {
		text := fmt.Sprintf("%d: %s, %s, %.0f percent, %s", i+1, p.Name, display.TalkText(p.TalkTime), 100*p.Share, display.Count(p.TurnCount, "turn"))
		if p.Muted {
			text = fmt.Sprintf("%d: %s, muted, %s, %s", i+1, p.Name, display.TalkText(p.TalkTime), display.Count(p.TurnCount, "turn"))
		}
		if s.Speaking(p) {
			text += ", speaking now"
		}
		_ = a.Notice(text + ".")
	}
	return a.failure()
}

// readCount reads the number of lines that a command is to print.
func (a *Accessible) readCount(args string) (n int, err error) {
	if args == "" {
		return 5, nil
	}
	if n, err = strconv.Atoi(args); err != nil || n < 1 || n > 1000 {
		return 0, a.printf("%s is not a number from 1 to 1000.", args)
	}
	return n, nil
}

func (a *Accessible) last(args string) error {
	n, err := a.readCount(args)
	if n == 0 {
		return err
	}
	s := a.session()
	s.Bookmarks = nil
	entries := s.Latest(n)
	if len(entries) == 0 {
		return a.printf("No turn has ended yet.")
	}
	for _, e := range slices.Backward(entries) { // the newest is last
		a.entry(s, e)
	}
	return a.failure()
}

func (a *Accessible) entry(s *display.Session, e display.Entry) {
	line, text := "Bookmark, "+display.Clock(e.At), e.Note
	if e.Lane >= 0 {
		line = fmt.Sprintf("%s, %s to %s", s.Speakers[e.Lane].Name, display.Clock(e.Turn.Start), display.Clock(e.Turn.End))
		text = e.Turn.Text
	}
	if text == "" {
		_ = a.printf("%s.", line)
	} else {
		_ = a.printf("%s: %s", line, text)
	}
}

func (a *Accessible) search(words string) error {
	if words == "" {
		return a.printf("Which words? Type search and the words.")
	}
	s, found := display.NewSession(a.o.Snapshot().Searched(), a.o.Annotations), 0
	for _, e := range slices.Backward(s.Latest(math.MaxInt)) {
		text := e.Note
		if e.Lane >= 0 {
			text = s.Speakers[e.Lane].Name + " " + e.Turn.Text
		}
		if display.HasWords(text, words) {
			a.entry(s, e)
			found++
		}
	}
	return a.printf("%s found.", display.Count(found, "result"))
}

func (a *Accessible) status(string) error {
	s := a.o.Snapshot()
	if s.Playback == nil {
		_ = a.printf("%s", connSentence(s))
	}
	text := fmt.Sprintf("%s of audio from %s", display.Clock(s.Position), s.Source)
	if s.Length > 0 {
		text += " of " + display.Clock(s.Length)
	}
	switch {
	case s.Watching:
		_ = a.printf("%s. Somebody else sends it: there is no sound here.", text)
	case s.Playback != nil:
		_ = a.printf("%s.", text)
	default:
		_ = a.printf("%s, %s dropped.", text, display.Count(s.Dropped, "chunk"))
	}
	if r := s.Recording; r != nil && r.Stopped != "" {
		_ = a.printf("Warning: %s.", r.Stopped)
	} else if r != nil {
		_ = a.printf("Recording, %s, %s.", display.Clock(r.Length), display.Bytes(r.Bytes))
	}
	if s.InputProblem != "" && !s.Finished() {
		_ = a.printf("%s", inputWarning(s))
	}
	if s.Stream != "" && !s.Watching {
		_ = a.printf("Others can watch it as stream %s.", s.Stream)
	}
	if s.Page != "" {
		_ = a.printf("The page is at %s", s.Page)
	}
	if p := s.Playback; p != nil && !s.Finished() {
		_ = a.printf("%s at %g times the original speed.", map[bool]string{true: "Paused", false: "Playing"}[p.Paused], p.Speed)
	}
	if level := display.ScaleDecibels(s.Level.RMS, display.MeterFloor, 0); !s.Finished() && !s.Watching && (s.Playback == nil || len(s.Levels) > 0) { // a recording may have no audio
		switch {
		case s.Level.Peak >= display.Clipping:
			_ = a.printf("The input is too loud.")
		case level < 0.1:
			_ = a.printf("The input is silent now.")
		default:
			_ = a.printf("The input is %.0f decibels below full scale.", (1-level)*-display.MeterFloor)
		}
	}
	if a.Unsaved() {
		_ = a.printf("Names and bookmarks are not saved yet.")
	}
	return a.failure()
}

// wire prints the state of the connection, then its latest messages and faults;
// chunks and pings are omitted.
func (a *Accessible) wire(args string) error {
	n, err := a.readCount(args)
	if n == 0 {
		return err
	}
	s, state := a.o.Wire(), a.o.Snapshot()
	for _, sentence := range wire.Sentences(s.Status, time.Now(), state.Latency, state.Position) {
		_ = a.Notice(sentence)
	}
	for _, line := range wire.Latest(s, n) {
		_ = a.printf("%s", line)
	}
	return a.failure()
}

func (a *Accessible) bookmark(note string) error {
	at := a.o.Snapshot().Position
	return a.change(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(at, note) },
		"Bookmark at %s.", display.Clock(at))
}

func (a *Accessible) unbookmark(args string) error {
	at, ok := display.ParseClock(args)
	if !ok {
		return a.noTime(args)
	}
	annotations, _ := a.o.Annotations.Load()
	for _, k := range annotations.Bookmarks() {
		if k.At < at || k.At >= at+1 { // times are shown in whole seconds
			continue
		}
		return a.change(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Unbookmark(k.At), nil },
			"Removed the bookmark at %s. Undo reverts it.", display.Clock(k.At))
	}
	return a.printf("There is no bookmark at %s; bookmarks lists all.", args)
}

func (a *Accessible) bookmarks(string) error {
	annotations, _ := a.o.Annotations.Load()
	if len(annotations.Bookmarks()) == 0 {
		return a.printf("There are no bookmarks.")
	}
	for _, k := range annotations.Bookmarks() {
		_ = a.printf("%s", strings.TrimSpace(display.Clock(k.At)+" "+k.Note))
	}
	return a.failure()
}

func (a *Accessible) undo(string) error {
	was, is, ok := a.o.Annotations.Undo()
	if !ok {
		return a.printf("There is nothing to undo.")
	}
	return a.printf("Undone: %s.", display.ChangeText(is, was))
}

func (a *Accessible) export(string) error {
	annotations, revision := a.o.Annotations.Load()
	text, err := a.o.Export(annotations)
	if err != nil {
		return a.result("", err)
	}
	a.o.Annotations.MarkSaved(annotations, revision)
	return a.Notice(text)
}

// result answers what was done, if anything, or what went wrong and what to do.
func (a *Accessible) result(text string, err error) error {
	switch next := hint.Of(err); {
	case err != nil:
		_ = a.Error(err.Error())
		if next != "" {
			_ = a.printf("%s", next)
		}
	case text != "":
		_ = a.Notice(text + ".")
	}
	return a.failure()
}

func (a *Accessible) record(string) error {
	return a.result(a.o.Record())
}

// microphone lists the devices, and continues with the one of a number.
func (a *Accessible) microphone(args string) error {
	list, err := a.o.Microphones.List()
	if err != nil {
		return a.result("", err)
	}
	if args == "" {
		for i, d := range list {
			text := fmt.Sprintf("%d: %s, %s", i+1, d.Name, d.System)
			if d.Used {
				text += ", in use"
			}
			_ = a.printf("%s.", text)
		}
		return a.failure()
	}
	n, err := strconv.Atoi(args)
	if err != nil || n < 1 || n > len(list) {
		return a.printf("%s is not the number of a microphone; microphone lists them.", args)
	}
	return a.result(a.o.Microphones.Use(list[n-1].Input))
}

func (a *Accessible) pause(string) error {
	a.o.Player.TogglePause()
	if p := a.o.Snapshot().Playback; p != nil && p.Paused {
		return a.printf("Paused.")
	}
	return a.printf("Playing.")
}

func (a *Accessible) play(string) error {
	if p := a.o.Snapshot().Playback; p != nil && p.Paused {
		return a.pause("")
	}
	return a.printf("Playing.")
}

// faster is the command that changes the speed by steps.
func faster(steps int) func(*Accessible, string) error {
	return func(a *Accessible, _ string) error {
		a.o.Player.Faster(steps)
		if p := a.o.Snapshot().Playback; p != nil {
			return a.printf("Speed %g.", p.Speed)
		}
		return nil
	}
}

func (a *Accessible) seek(args string) error {
	at, ok := display.ParseClock(args)
	if !ok {
		return a.noTime(args)
	}
	a.o.Player.Seek(at)
	return a.printf("At %s.", display.Clock(a.o.Snapshot().Position))
}

func (a *Accessible) noTime(text string) error {
	return a.printf("%q is not a time; type 90, 1:30 or 1:02:03.", text)
}

func (a *Accessible) quit(string) error {
	if a.Unsaved() && !a.quitAsked {
		return a.AskToSave("Quit again")
	}
	return ErrQuit
}

// Unsaved reports whether names or bookmarks are lost at the end.
func (a *Accessible) Unsaved() bool { return a.o.Annotations.Unsaved() }

// AskToSave says that names and bookmarks are not saved, what discards them (quit, such
// as "Quit"), and what saves them. The next quit discards them.
func (a *Accessible) AskToSave(quit string) error {
	a.quitAsked = true
	text := "Names and bookmarks are not saved. " + quit + " discards them"
	if a.o.Export != nil {
		text += ", export saves them"
	}
	return a.printf("%s.", text)
}
