package plain

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

func commandsAt(position float64) (*Accessible, *bytes.Buffer, *protocol.AnnotationsStore) {
	var b bytes.Buffer
	store := protocol.NewAnnotationsStore(protocol.Annotations{})
	s := tuitest.State(tuitest.FourSpeakers, position, 1)
	c := NewAccessible(&b, display.Controls{Snapshot: func() display.State { return s }, Annotations: store})
	return c, &b, store
}

// TestCommands runs commands and expects the answers, in order.
func TestCommands(t *testing.T) {
	c, b, store := commandsAt(60)
	fails := true
	c.o.Export = func(a protocol.Annotations) (string, error) {
		if fails {
			return "", hint.Add(errors.New("cannot write"), "Choose another folder.")
		}
		return "wrote 6 files", nil
	}
	for _, x := range []struct{ say, want string }{
		{"", ""},
		{"dance", "There is no command dance. Type help for all of them.\n"},
		{"who", "1: SPEAKER_00, "},
		{"name 1 Anna Löwe", "SPEAKER_00 is now Anna Löwe.\n"},
		{"name 1", "Which name?"},
		{"name 9 Ben", "No speaker is called 9 Ben; who lists all.\n"},
		{"name SPEAKER_01 anna", "SPEAKER_01 is now anna.\n"},
		{"name 2 Anna Löwe", "Nothing changed: the name is in use"},
		{"NAME anna löwe Ann", "Anna Löwe is now Ann.\n"},
		{"merge", "Who?"},
		{"merge 1 1", "Ann cannot be merged with itself.\n"},
		{"merge 1 into 7", "No speaker is called 7"},
		{"merge 2 1", "Merged anna into Ann. Undo reverts it.\n"},
		{"who", "1: Ann, "},
		{"undo", "Undone: merge of anna into Ann.\n"},
		{"undo", "Undone: name Ann of SPEAKER_00.\n"},
		{"merge 2 3", "Merged anna into SPEAKER_02. Undo reverts it.\n"},
		{"undo", "Undone: merge of anna into SPEAKER_02.\n"},
		{"mute 3", "SPEAKER_02 is muted.\n"},
		{"who", "3: SPEAKER_02, muted, "},
		{"undo", "Undone: mute of SPEAKER_02.\n"},
		{"mute 3", "SPEAKER_02 is muted.\n"},
		{"mute SPEAKER_02", "SPEAKER_02 is no longer muted.\n"},
		{"undo", "Undone: unmute of SPEAKER_02.\n"},
		{"mute SPEAKER_02", "SPEAKER_02 is no longer muted.\n"},
		{"bookmarks", "There are no bookmarks.\n"},
		{"unbookmark 1:00", "There is no bookmark at 1:00; bookmarks lists all.\n"},
		{"unbookmark", "\"\" is not a time"},
		{"mark", "Bookmark at 1:00.\n"},
		{"unmark 60", "Removed the bookmark at 1:00. Undo reverts it.\n"},
		{"bookmarks", "There are no bookmarks.\n"},
		{"bookmark a note\x1b[2J", "Bookmark at 1:00.\n"},
		{"marks", "1:00 a note\n"},
		{"mark another", "Bookmark at 1:00.\n"},
		{"undo", "Undone: note of the bookmark at 1:00.\n"},
		{"last 2", "SPEAKER_0"},
		{"search", "Which words?"},
		{"search note A", "Bookmark, 1:00: a note\n1 result found.\n"},
		{"search Löwe", "Anna Löwe, 0:49 to 0:50.\nAnna Löwe, 0:58 to 0:58.\n6 results found.\n"},
		{"move 2 0:46 anna löwe", "The turn at 0:45 is Anna Löwe's now. Undo reverts it.\n"},
		{"last 5", "Anna Löwe, 0:45 to 0:49.\n"},
		{"undo", "Undone: the turn at 0:45 moved to Anna Löwe.\n"},
		{"move 2 x 1", "\"x\" is not a time; type 90, 1:30 or 1:02:03.\n"},
		{"move 2 0:44 1", "anna has no turn at 0:44 that is over; last lists turns.\n"},
		{"move 2 0:45 2", "It is anna's turn already.\n"},
		{"move 2 0:45", "Who?"},
		{"last x", "x is not a number from 1 to 1000.\n"},
		{"status", "Connected to built-in server.\n1:00 of audio from demo conversation, 0 chunks dropped.\n"},
		{"status", " decibels below full scale.\nNames and bookmarks are not saved yet.\n"},
		{"pause", "There is no command pause."},
		{"quit", "Names and bookmarks are not saved. Quit again discards them, export saves them.\n"},
		{"export", "Error: cannot write\nChoose another folder.\n"},
		{"quit", "Names and bookmarks are not saved."},
		{"help", "merge WHO WHOM: merges the first speaker into the second.\n"},
	} {
		b.Reset()
		if err := c.Run(x.say); err != nil {
			t.Fatalf("%q: %v", x.say, err)
		}
		if got := b.String(); !strings.Contains(got, x.want) || x.want == "" && got != "" {
			t.Errorf("%q is answered %q, want %q in it", x.say, got, x.want)
		}
	}
	fails = false
	if err := c.Run("export"); err != nil || store.Unsaved() {
		t.Errorf("%v, or exported but not saved", err)
	}
	testkit.Equal(t, c.Run("quit"), ErrQuit, "quit returns")
	if first, second := errors.Join(c.Run("mark"), c.Run("quit")), c.Run("quit"); first != nil || second != ErrQuit {
		t.Errorf("quit returns %v, and then %v", first, second)
	}
}

func TestPlaybackCommands(t *testing.T) {
	c, b, _ := commandsAt(60)
	p := &tuitest.Player{}
	c.o.Player = p
	for _, line := range []string{"pause", "seek 1:02:03", "seek 90", "seek 1:75", "seek x", "seek 1.5:0", "faster", "faster", "slower"} {
		testkit.NoError(t, c.Run(line))
	}
	if p.Toggled != 1 || p.Speed != 1 || len(p.Sought) != 2 || p.Sought[0] != 3723 || p.Sought[1] != 90 {
		t.Errorf("%+v", p)
	}
	testkit.Equal(t, strings.Count(b.String(), "is not a time"), 3, "times are refused", b.String())
}

// Whatever is typed: no panic, whole lines, nothing that moves the terminal.
func TestCommandsSurviveAnything(t *testing.T) {
	known := []string{"1", "2", "SPEAKER_01", "into", "0:05", "-1", "9999999999999999999"}
	for _, k := range commands() {
		known = append(known, k.words[0])
	}
	words := rapid.OneOf(rapid.String(), rapid.SampledFrom(known))
	rapid.Check(t, func(t *rapid.T) {
		c, b, _ := commandsAt(30)
		c.o.Player, c.o.Memory, c.o.Export, c.o.Wire = &tuitest.Player{}, &tuitest.Memory{}, func(protocol.Annotations) (string, error) { return "", nil }, tuitest.Log(false).Snapshot
		for range rapid.IntRange(1, 6).Draw(t, "lines") {
			line := strings.Join(rapid.SliceOfN(words, 0, 4).Draw(t, "words"), " ")
			if err := c.Run(line); err != nil && err != ErrQuit {
				t.Fatal(err)
			}
		}
		text := b.String()
		if text != "" && !strings.HasSuffix(text, "\n") {
			t.Fatalf("half a line: %q", text)
		}
		for _, r := range text {
			if r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("%U is said: %q", r, text)
			}
		}
	})
}

func TestWireCommand(t *testing.T) {
	for _, c := range []struct {
		end  bool
		want []string
	}{
		{false, []string{"Sent 402, 2.6 MB", "warning: 1.7 s behind", "warning: 3 retransmitted", "ping 23 ms", "received error: Invalid chunk size.", "received event: start SPEAKER_00 at 35.000 s, lag 1.0 s."}},
		{true, []string{"Warning: refused, 1008 against the service's rules.", "received close: 1008 against the service's rules"}},
	} {
		var b strings.Builder
		k := NewAccessible(&b, display.Controls{Snapshot: func() display.State { return display.State{} }, Wire: tuitest.Log(c.end).Snapshot})
		for _, line := range []string{"wire", "wire 0", "help"} {
			testkit.NoError(t, k.Run(line))
		}
		for _, want := range append(c.want, "0 is not a number", "wire [COUNT]: reports the connection in detail") {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q is not said:\n%s", want, b.String())
			}
		}
		if strings.Contains(b.String(), "%!") {
			t.Errorf("%s", b.String())
		}
	}
	var b strings.Builder
	k := NewAccessible(&b, display.Controls{Snapshot: func() display.State { return display.State{} }})
	_ = k.Run("wire")
	testkit.Contains(t, b.String(), "There is no command wire")
}

// TestRecordCommand is the same for screen readers.
func TestRecordCommand(t *testing.T) {
	c, b, _ := commandsAt(60)
	if err := c.Run("record"); err != nil || !strings.Contains(b.String(), "There is no command record") {
		t.Errorf("%v, %s", err, b)
	}
	fails := error(nil)
	c.o.Record = func() (string, error) { return "recording into monday", fails }
	b.Reset()
	_ = c.Run("record")
	fails = hint.Add(errors.New("cannot record"), "Choose another folder.")
	_ = c.Run("rec")
	testkit.Equal(t, b.String(), "Recording into monday.\nError: cannot record\nChoose another folder.\n", b)
}

// TestRememberCommands is the same for screen readers.
func TestRememberCommands(t *testing.T) {
	c, b, _ := commandsAt(60)
	f := &tuitest.Memory{}
	c.o.Memory = f
	f.Known = "Kim"
	for _, line := range []string{"remember 1", "name 1 Anna", "name 1 Ann", "remember Ann", "remember nobody", "name 3 Kim", "never", "name 2 Ben"} {
		testkit.NoError(t, c.Run(line))
	}
	f.Fixes = "the voiceprint of Ann is stored as Eva now"
	_ = c.Run("name 1 Eva")
	want := `SPEAKER_00 has no name yet. Type name SPEAKER_00 and the name.
SPEAKER_00 is now Anna.
Remember the voice of Anna, on this machine only? Type remember Anna, or never, to stop being asked.
Anna is now Ann.
A voiceprint is stored in /home/sam/voices.
No speaker is called nobody; who lists all.
SPEAKER_02 is now Kim.
A voice of Kim is stored already. Type remember Kim to replace it with this one, or never, to stop being asked.
You are not asked again. Remember still learns a voice.
SPEAKER_01 is now Ben.
Ann is now Eva.
The voiceprint of Ann is stored as Eva now.
`
	if b.String() != want || !slices.Equal(f.Calls, []string{"SPEAKER_00"}) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.TrimSpace(b.String()), want)
	}
}

// TestSearchInAReplay: words are searched in all of the recording.
func TestSearchInAReplay(t *testing.T) {
	c, b, _ := commandsAt(60)
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	whole := tuitest.State([]protocol.Turn{{Speaker: "SPEAKER_00", Start: 290, End: 295, Text: "so we ship it"}}, 300, 1)
	s.Length, s.Playback = 300, &display.Playback{Speed: 1, Whole: func() protocol.Snapshot { return whole.Timeline }}
	c.o.Snapshot = func() display.State { return s }
	testkit.NoError(t, c.Run("search ship"))
	testkit.Contains(t, b.String(), ", 4:50 to 4:55: so we ship it\n1 result found.\n")
}

// A replay has no connection, and may have no audio; a gap is said as a whole.
func TestReplayInWords(t *testing.T) {
	c, b, _ := commandsAt(60)
	p := &tuitest.Player{}
	c.o.Player = p
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	s.Source, s.Levels, s.Page = "monday", nil, "http://127.0.0.1:8800/x"
	s.Timeline.Lanes[0].Turns[len(s.Timeline.Lanes[0].Turns)-1].Text = "so we ship it"
	s.Recording = &display.Recording{Length: 40, Bytes: 1_300_000}
	playback := display.Playback{Speed: 2}
	s.Playback = &playback
	c.o.Snapshot = func() display.State { return s }
	for _, end := range []float64{60, 61, 62} {
		s.Position, s.Gaps = end, []protocol.Span{{Start: 58, End: min(end, 61.5)}}
		_ = c.State(s)
	}
	for _, say := range []string{"status", "play", "faster", "seek 90:00", "last 100"} {
		testkit.NoError(t, c.Run(say))
	}
	got := b.String()
	for _, want := range []string{
		"Replaying monday.\n", "Warning: for 3.5 seconds from 0:58 on the speakers are unknown.\n", "1:02 of audio from monday.\n",
		"Recording, 0:40, 1.3 MB.\n", "The page is at http://127.0.0.1:8800/x\n", "Playing.\n", "Speed 2.\n", "At 1:02.\n", ": so we ship it\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not said: %s", want, got)
		}
	}
	for _, not := range []string{"Connect", "dropped", "The input", "Listening"} {
		if strings.Contains(got, not) {
			t.Errorf("%q is said: %s", not, got)
		}
	}
	if n := strings.Count(got, "unknown"); n != 1 {
		t.Errorf("the gap is said %d times", n)
	}
	testkit.Equal(t, p.Toggled, 0, "play paused it")
	b.Reset()
	s.Conn, playback.Paused = display.Closed, true
	testkit.NoError(t, c.Run("status"))
	if strings.Contains(b.String(), "Paused") {
		t.Errorf("at its end a replay is paused: %s", b.String())
	}
}
