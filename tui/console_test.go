package tui

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hubbub/protocol"
)

// hinted is an error as other rooms build them.
type hinted struct{ error }

func (hinted) Hint() string { return "Choose another folder." }

func consoleAt(heard float64) (*Console, *bytes.Buffer, *protocol.AnnotationsStore) {
	var b bytes.Buffer
	store := protocol.NewAnnotationsStore(protocol.Annotations{})
	s := sessionAt(talkOf4, heard, 1)
	c := NewConsole(NewAccessible(&b), ConsoleOptions{Snapshot: func() State { return s }, Annotations: store})
	return c, &b, store
}

// TestConsole says commands and expects the answers, in order.
func TestConsole(t *testing.T) {
	c, b, store := consoleAt(60)
	fails := true
	c.o.Export = func(a protocol.Annotations) (string, error) {
		if fails {
			return "", hinted{errors.New("cannot write")}
		}
		return "wrote 6 files", nil
	}
	for _, x := range []struct{ say, want string }{
		{"", ""},
		{"dance", "There is no command dance. Type help for all of them.\n"},
		{"who", "1: SPEAKER_00, "},
		{"name 1 Anna Löwe", "SPEAKER_00 is now Anna Löwe.\n"},
		{"name 1", "Which name?"},
		{"name 9 Ben", "There is nobody called 9 Ben; who says them all.\n"},
		{"name SPEAKER_01 anna", "SPEAKER_01 is now anna.\n"},
		{"name 2 Anna Löwe", "Not done: the name is in use"},
		{"NAME anna löwe Ann", "Anna Löwe is now Ann.\n"},
		{"merge", "Who?"},
		{"merge 1 1", "Ann is one person already.\n"},
		{"merge 1 into 7", "There is nobody called 7"},
		{"merge 2 1", "Merged anna into Ann. Undo takes it back.\n"},
		{"who", "1: Ann, "},
		{"undo", "Undone: merge of anna into Ann.\n"},
		{"undo", "Undone: the name Ann.\n"},
		{"mute 3", "SPEAKER_02 is left out.\n"},
		{"who", "3: SPEAKER_02, muted, "},
		{"mute SPEAKER_02", "SPEAKER_02 counts again.\n"},
		{"marks", "There are no bookmarks.\n"},
		{"mark a note\x1b[2J", "Bookmark at 1:00.\n"},
		{"marks", "1:00 a note\n"},
		{"last 2", "SPEAKER_0"},
		{"last x", "x is not a number from 1 to 1000.\n"},
		{"status", "Connected to built-in server.\n1:00 heard from demo conversation, 0 chunks dropped.\n"},
		{"status", "Names and bookmarks are not kept yet.\n"},
		{"pause", "There is no command pause."},
		{"quit", "Names and bookmarks are not kept. Quit again leaves without them, export keeps them.\n"},
		{"export", "Error: cannot write\nChoose another folder.\n"},
		{"quit", "Names and bookmarks are not kept."},
		{"help", "merge WHO WHOM: makes two one person, who is called as the second.\n"},
	} {
		b.Reset()
		if err := c.Do(x.say); err != nil {
			t.Fatalf("%q: %v", x.say, err)
		}
		if got := b.String(); !strings.Contains(got, x.want) || x.want == "" && got != "" {
			t.Errorf("%q is answered %q, want %q in it", x.say, got, x.want)
		}
	}
	fails = false
	if err := c.Do("export"); err != nil || store.Unsaved() {
		t.Errorf("%v, or exported but not kept", err)
	}
	if err := c.Do("quit"); err != ErrQuit {
		t.Errorf("quit answers %v", err)
	}
}

func TestQuitTwiceLeavesWithoutKeeping(t *testing.T) {
	c, _, _ := consoleAt(60)
	_ = c.Do("mark")
	if err := c.Do("quit"); err != nil {
		t.Fatalf("the first quit answers %v", err)
	}
	if err := c.Do("quit"); err != ErrQuit {
		t.Errorf("the second quit answers %v", err)
	}
}

func TestConsolePlays(t *testing.T) {
	c, b, _ := consoleAt(60)
	p := &fakePlayer{}
	c.o.Player = p
	for _, line := range []string{"pause", "seek 1:02:03", "seek 90", "seek 1:75", "seek x", "seek 1.5:0", "faster", "faster", "slower"} {
		if err := c.Do(line); err != nil {
			t.Fatal(err)
		}
	}
	if p.toggled != 1 || p.speed != 1 || len(p.sought) != 2 || p.sought[0] != 3723 || p.sought[1] != 90 {
		t.Errorf("%+v", p)
	}
	if n := strings.Count(b.String(), "is no time"); n != 3 {
		t.Errorf("%d times are refused: %s", n, b.String())
	}
}

// TestNamesAreSpoken: what is said of turns and at the end has the names.
func TestNamesAreSpoken(t *testing.T) {
	c, b, _ := consoleAt(60)
	_ = c.Do("name 1 Anna")
	_ = c.Do("merge 3 1")
	b.Reset()
	_ = c.out.Turn(protocol.Turn{Speaker: "SPEAKER_02", Start: 1, End: 3})
	_ = c.out.Summary(c.o.Snapshot())
	got := b.String()
	if !strings.HasPrefix(got, "Anna, 0:01 to 0:03\n1:00 heard, 3 speakers.\nAnna: ") || strings.Contains(got, "SPEAKER_02") {
		t.Errorf("%s", got)
	}
}

// Whatever is typed: no panic, whole lines, nothing that moves the terminal.
func TestConsoleSurvivesAnything(t *testing.T) {
	words := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"name", "merge", "who", "1", "2", "SPEAKER_01", "undo", "mute", "mark", "last", "into", "-1", "9999999999999999999"}))
	rapid.Check(t, func(t *rapid.T) {
		c, b, _ := consoleAt(30)
		for range rapid.IntRange(1, 6).Draw(t, "lines") {
			line := strings.Join(rapid.SliceOfN(words, 0, 4).Draw(t, "words"), " ")
			if err := c.Do(line); err != nil && err != ErrQuit {
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
