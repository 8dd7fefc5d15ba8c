package plain

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/protocol/trace"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

func TestAccessible(t *testing.T) {
	var b bytes.Buffer
	a := NewAccessible(&b, display.Controls{Microphones: struct{ display.Microphones }{}})
	s := display.State{Source: "meeting.wav", Server: "built-in server"}
	say := func(f func()) {
		testkit.NoError(t, a.State(s))
		if f != nil {
			f()
		}
	}
	say(nil)
	say(nil) // nothing new, nothing said
	s.Conn = display.Open
	say(func() { a.Turn(threeTurns[0]) })
	s.Position, s.Sent, s.ChunksSent, s.Level.Peak = 20, 20, 200, 0.4
	say(func() { a.Turn(threeTurns[2]) })
	s.Dropped = 1
	say(func() { a.Error("Invalid chunk size\x1b[2J") })
	s.Dropped, s.Overflows = 4, 2
	say(nil)
	s.InputProblem = `"desk" delivers only silence: is it muted?`
	say(nil)
	s.InputProblem, s.InputLost = `no audio from "desk" since 0:10`, true
	say(nil)
	s.InputProblem, s.InputLost = "", false
	s.Conn = display.Draining
	say(func() { a.Notice("recording kept in talk/"); a.Notice("audio.wav is missing"); a.Notice("done.") })
	s.Conn = display.Closed
	say(nil)
	s.Conn, s.ConnReason = display.Failed, "connection lost"
	say(nil)
	s.Timeline.Lanes = []protocol.Lane{
		{Speaker: "SPEAKER_00", Turns: threeTurns[:1], Talk: 61},
		{Speaker: "SPEAKER_01", Turns: threeTurns[1:], Talk: 20.4},
	}
	a.Summary(s)
	want := `Listening to meeting.wav.
Connecting to built-in server.
Connected to built-in server.
SPEAKER_00, 0:01 to 0:03
SPEAKER_00, 59:59 to 1:02:05
Warning: 1 chunk dropped, 1 in all.
Error: Invalid chunk size
Warning: 3 chunks dropped, 4 in all.
Warning: the device lost audio 2 times.
Warning: "desk" delivers only silence: is it muted? Microphone lists others.
Warning: no audio from "desk" since 0:10. Microphone lists others.
Input ended, waiting for the last turns.
Recording kept in talk/
audio.wav is missing
Done.
Connection closed.
Finished after 0:20.
Connection failed: connection lost.
0:20 of audio, 2 speakers.
SPEAKER_00: 1:01, 75 percent, 1 turn.
SPEAKER_01: 0:20, 25 percent, 2 turns.
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

// A turn is reported when it begins and when it is over; quiet reports neither,
// and all of them report a service that is late, and gaps.
func TestAccessibleDetail(t *testing.T) {
	var b bytes.Buffer
	store := protocol.NewAnnotationsStore(protocol.Annotations{})
	log := tuitest.LateLog(time.Second, time.Millisecond, time.Second)
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	a := NewAccessible(&b, display.Controls{Snapshot: func() display.State { return s }, Annotations: store, Wire: func() trace.Snapshot {
		shot := log.Snapshot()
		// The stream of the log is one of now.
		shift := time.Since(time.Unix(1_000_000, 0))
		shot.Status.Opened, shot.Status.PingAt = shot.Status.Opened.Add(shift), shot.Status.PingAt.Add(shift)
		shot.Status.LastReceived = shot.Status.LastReceived.Add(shift)
		return shot
	}})
	said := func(f func()) string {
		b.Reset()
		f()
		testkit.NoError(t, a.State(s))
		return b.String()
	}
	lane := func(label string, open bool) {
		s.Timeline.Lanes = []protocol.Lane{{Speaker: label, Open: open, OpenSince: 59}}
	}
	said(func() { lane("SPEAKER_00", false) })
	for _, x := range []struct {
		name string
		do   func()
		want string
	}{
		{"a turn begins", func() { _ = a.Run("name 1 Anna"); lane("SPEAKER_00", true) }, "SPEAKER_00 is now Anna.\nAnna is speaking.\n"},
		{"it goes on", func() {}, ""},
		{"it ends", func() {
			lane("SPEAKER_00", false)
			_ = a.Turn(protocol.Turn{Speaker: "SPEAKER_00", Start: 59, End: 60})
		}, "Anna, 0:59 to 1:00\n"},
		{"quiet", func() {
			_ = a.Run("quiet")
			lane("SPEAKER_00", true)
			_ = a.Turn(protocol.Turn{Speaker: "SPEAKER_00", Start: 59, End: 60})
		}, "Quiet: problems only. Normal reports turns again.\n"},
		{"late", func() { log = tuitest.LateLog(14*time.Second, time.Millisecond, time.Second) },
			"Warning: events arrive 14 s late: the service is overloaded or something buffers them.\n"},
		{"still late", func() { log = tuitest.LateLog(16*time.Second, time.Millisecond, time.Second) }, ""},
		{"on time", func() { log = tuitest.LateLog(time.Second, time.Millisecond, time.Second) }, "The service is on time again.\n"},
		{"late again", func() { log = tuitest.LateLog(14*time.Second, time.Millisecond, time.Second) },
			"Warning: events arrive 14 s late: the service is overloaded or something buffers them.\n"},
		{"just lost", func() { log.Record(trace.Record{Kind: trace.KindEnd, Stream: 1}) }, ""},
		{"a gap", func() { s.Gaps = []protocol.Span{{Start: 12, End: 14.5}} }, "Warning: for 2.5 seconds from 0:12 on the speakers are unknown.\n"},
		{"the same gap", func() {}, ""},
		{"an outage", func() { s.InputLost, s.Gaps = true, append(s.Gaps, protocol.Span{Start: 20, End: 22}) }, ""},
		{"it goes on", func() { s.Gaps[1].End = 23 }, ""},
		{"it is over", func() { s.InputLost = false }, "Warning: for 3.0 seconds from 0:20 on the speakers are unknown.\n"},
		{"verbose", func() { _ = a.Run("verbose"); log = tuitest.LateLog(3*time.Second, time.Millisecond, time.Second) },
			"Verbose: turns, problems and lag.\nLag 3.0 seconds.\n"},
		{"a little more", func() { log = tuitest.LateLog(3600*time.Millisecond, time.Millisecond, time.Second) }, ""},
		{"a second more", func() { log = tuitest.LateLog(4200*time.Millisecond, time.Millisecond, time.Second) }, "Lag 4.2 seconds.\n"},
		{"normal", func() {
			_ = a.Run("normal")
			log = tuitest.LateLog(time.Second, time.Millisecond, time.Second)
			lane("SPEAKER_01", true)
		},
			"Normal: turns and problems.\nSPEAKER_01 is speaking.\n"},
	} {
		testkit.Equal(t, said(x.do), x.want, x.name)
	}
}

// TestWatchingInWords says of a stream of somebody else's whose it is, and
// nothing of a sound that does not come here; of one's own, how others watch it.
func TestWatchingInWords(t *testing.T) {
	var b bytes.Buffer
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	s.Source, s.Stream, s.Watching, s.Level, s.Levels = "stream "+tuitest.Stream, tuitest.Stream, true, display.Level{}, nil
	a := NewAccessible(&b, display.Controls{Snapshot: func() display.State { return s }})
	testkit.NoError(t, a.State(s))
	testkit.NoError(t, a.Run("status"))
	for _, want := range []string{"Watching stream " + tuitest.Stream + ". There is no sound here.\n", "Somebody else sends it"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %q", want, b.String())
		}
	}
	for _, never := range []string{"dropped", "silent", "decibels", "Others watch", "Listening"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("%q in %q", never, b.String())
		}
	}

	b.Reset()
	s.Watching, s.Source = false, "microphone"
	testkit.NoError(t, a.Run("status"))
	testkit.NoError(t, NewAccessible(&b, display.Controls{}).State(s))
	if n := strings.Count(b.String(), "Others can watch it as stream "+tuitest.Stream+".\n"); n != 2 {
		t.Errorf("the id is said %d times: %q", n, b.String())
	}
}

// TestAccessibleUsesNames: what is said of turns and at the end has the names.
func TestAccessibleUsesNames(t *testing.T) {
	a, b, _ := commandsAt(60)
	_ = a.Run("name 1 Anna")
	_ = a.Run("merge 3 1")
	b.Reset()
	_ = a.Turn(protocol.Turn{Speaker: "SPEAKER_02", Start: 1, End: 3})
	_ = a.Summary(a.o.Snapshot())
	got := b.String()
	if !strings.HasPrefix(got, "Anna, 0:01 to 0:03\n1:00 of audio, 3 speakers.\nAnna: ") || strings.Contains(got, "SPEAKER_02") {
		t.Errorf("%s", got)
	}
}

// A speaker is announced once when recognised, and when no longer; typed names are
// not.
func TestAccessibleAnnouncesRecognised(t *testing.T) {
	var b bytes.Buffer
	s := display.State{Conn: display.Open, Source: "mic", Server: "built-in server"}
	s.Timeline.Lanes = []protocol.Lane{{Speaker: "SPEAKER_00", Open: true}, {Speaker: "SPEAKER_01"}}
	annotations := testkit.Must(protocol.Annotations{}.Rename("SPEAKER_01", "Anna"))(t)
	a := NewAccessible(&b, display.Controls{Annotations: protocol.NewAnnotationsStore(annotations)})
	for range 2 {
		testkit.NoError(t, a.State(s))
		s.Timeline.Lanes = []protocol.Lane{{Speaker: "SPEAKER_00", Match: "Sam", Open: true}, {Speaker: "SPEAKER_01", Match: "Rosa"}}
	}
	_ = a.State(s)
	_ = a.Turn(protocol.Turn{Speaker: "SPEAKER_00", Start: 1, End: 3, Match: "Sam"})
	_ = a.Turn(protocol.Turn{Speaker: "SPEAKER_01", Start: 4, End: 5, Match: "Rosa"})
	s.Timeline.Lanes = []protocol.Lane{{Speaker: "SPEAKER_00", Open: true}, {Speaker: "SPEAKER_01"}}
	_ = a.State(s)
	_ = a.State(s)
	want := `Listening to mic.
Connected to built-in server.
SPEAKER_00 is speaking.
SPEAKER_00 is recognised as Sam.
Sam, 0:01 to 0:03
Anna, 0:04 to 0:05
SPEAKER_00 is no longer recognised as Sam.
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

// What is wrong with the microphone, and with the recording, is said once.
func TestAccessibleSaysProblemsOnce(t *testing.T) {
	for text, change := range map[string]func(s *display.State){
		`no audio from "desk" since 0:58: reopening it until 2:58`: func(s *display.State) {
			s.InputProblem, s.InputLost = `no audio from "desk" since 0:58: reopening it until 2:58`, true
		},
		"recording stopped at 14:03:22, after 58s: the disk is full": func(s *display.State) {
			s.Recording = &display.Recording{Length: 58, Bytes: 1_856_000, Free: 12_400_000_000, Stopped: "recording stopped at 14:03:22, after 58s: the disk is full"}
		},
	} {
		s := tuitest.State(tuitest.FourSpeakers, 60, 1)
		change(&s)
		var b strings.Builder
		a := NewAccessible(&b, display.Controls{})
		for range 2 {
			_ = a.State(s)
		}
		if n := strings.Count(b.String(), "Warning: "+text+"."); n != 1 {
			t.Errorf("said %d times: %s", n, b.String())
		}
	}
}

// TestAccessibleSaysWhatThereIs: nothing of a command that is not there, and no free
// space that is not known.
func TestAccessibleSaysWhatThereIs(t *testing.T) {
	var b strings.Builder
	s := tuitest.State(tuitest.FourSpeakers, 1, 1)
	s.InputProblem = `"desk + speakers" delivers only silence: is it muted?`
	s.Recording = &display.Recording{}
	a := NewAccessible(&b, display.Controls{})
	_ = a.State(s)
	for _, want := range []string{"Warning: " + s.InputProblem + "\n", "Recording.\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %q", want, b.String())
		}
	}
}
