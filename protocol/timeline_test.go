package protocol

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"hubbub/protocol/testkit"
)

// TestTimelineFiles plays testdata/timeline/*.txt: above the line "--" what
// arrives (start AT LABEL, end AT LABEL, raw MESSAGE, close AT), below it the
// timeline that must come of it (turn LABEL START END, open LABEL SINCE, lanes
// in order, decided AT, counts). Labels may be quoted as in Go; "#" is a
// comment.
func TestTimelineFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/timeline/*.txt")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			in, want := readState(t, file)
			timeline := NewTimeline()
			var finished []Turn
			for _, line := range in {
				finished = append(finished, play(t, timeline, line)...)
			}
			got := timeline.Snapshot()
			if text := describe(got); text != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", text, strings.Join(want, "\n"))
			}
			sortTurns(finished)
			if all := got.Turns(); !slices.Equal(finished, sortTurns(all)) {
				t.Errorf("returned as finished: %v, kept: %v", finished, all)
			}
			checkSnapshot(t, got)
		})
	}
}

func readState(t *testing.T, file string) (in, want []string) {
	f := testkit.Must(os.Open(file))(t)
	defer f.Close()
	below := false
	for scan := bufio.NewScanner(f); scan.Scan(); {
		line := strings.TrimSpace(scan.Text())
		switch {
		case line == "" || line[0] == '#':
		case line == "--":
			below = true
		case below:
			want = append(want, line)
		default:
			in = append(in, line)
		}
	}
	return in, want
}

func play(t *testing.T, timeline *Timeline, line string) []Turn {
	what, rest, _ := strings.Cut(line, " ")
	if what == "raw" {
		e, _ := ParseEvent([]byte(rest))
		return timeline.Apply(e)
	}
	number, label, _ := strings.Cut(rest, " ")
	at, err := strconv.ParseFloat(number, 64)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if strings.HasPrefix(label, `"`) {
		if label, err = strconv.Unquote(label); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	switch what {
	case "start":
		return timeline.Apply(Event{Type: TypeSpeakerStart, Timestamp: at, Speaker: label})
	case "end":
		return timeline.Apply(Event{Type: TypeSpeakerEnd, Timestamp: at, Speaker: label})
	case "close":
		return timeline.EndOpen(at)
	}
	t.Fatalf("%s: unknown", line)
	return nil
}

func describe(s Snapshot) string {
	var lines []string
	for _, l := range s.Lanes {
		lines = append(lines, fmt.Sprintf("lane %s %.3f", l.Speaker, l.Talk))
		for _, turn := range l.Turns {
			lines = append(lines, fmt.Sprintf("turn %s %g %g", turn.Speaker, turn.Start, turn.End))
		}
		if l.Open {
			lines = append(lines, fmt.Sprintf("open %s %g", l.Speaker, l.OpenSince))
		}
	}
	c := s.Counts
	return strings.Join(append(lines, fmt.Sprintf("decided %g", s.Decided),
		fmt.Sprintf("counts events=%d errors=%d unknown=%d malformed=%d degenerate=%d refused=%d",
			c.Events, c.Errors, c.Unknown, c.Malformed, c.Degenerate, c.Refused)), "\n")
}

func sortTurns(turns []Turn) []Turn {
	slices.SortFunc(turns, func(a, b Turn) int {
		if a.Start != b.Start {
			return int(math.Copysign(1, a.Start-b.Start))
		}
		return strings.Compare(a.Speaker, b.Speaker)
	})
	return turns
}

// checkSnapshot checks what must hold whatever the events were.
func checkSnapshot(t interface{ Fatalf(string, ...any) }, s Snapshot) {
	seen := map[string]bool{}
	for _, l := range s.Lanes {
		if seen[l.Speaker] || l.Speaker != Label(l.Speaker) {
			t.Fatalf("label %q stands twice, or is not fit to be shown", l.Speaker)
		}
		seen[l.Speaker] = true
		end, talk := 0.0, 0.0
		for _, turn := range l.Turns {
			if !(turn.Start >= end && turn.End > turn.Start && turn.End <= MaxTimestamp) || turn.Speaker != l.Speaker {
				t.Fatalf("%s: %+v after %g", l.Speaker, turn, end)
			}
			end = turn.End
			talk += turn.End - turn.Start
		}
		if math.Abs(talk-l.Talk) > 1e-6 {
			t.Fatalf("%s: Talk = %g, the turns' sum is %g", l.Speaker, l.Talk, talk)
		}
	}
	if len(s.Lanes) > MaxLabels {
		t.Fatalf("%d labels", len(s.Lanes))
	}
	if !slices.IsSortedFunc(s.Turns(), byStart) {
		t.Fatalf("the turns are not in order: %v", s.Turns())
	}
}

// anyEvent draws events that collide often, and now and then an absurd one.
func anyEvent() *rapid.Generator[Event] {
	at := rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 40), func(n int) float64 { return float64(n) / 4 }),
		rapid.Float64Range(0, 10),
		rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, -1e-9, 1e300, MaxTimestamp, 0.0004}),
	)
	label := rapid.SampledFrom([]string{"A", "A", "A", "B", "B", "A\x00", "", "\x1b", strings.Repeat("long", 40)})
	return rapid.Custom(func(t *rapid.T) Event {
		return Event{
			Type:      rapid.SampledFrom([]string{TypeSpeakerStart, TypeSpeakerEnd, TypeSpeakerStart, TypeSpeakerEnd, TypeError, "other"}).Draw(t, "type"),
			Timestamp: at.Draw(t, "at"),
			Speaker:   label.Draw(t, "label"),
			Err:       rapid.SampledFrom([]string{"", "", "", "", "", "", "", "bad"}).Draw(t, "err"),
		}
	})
}

func TestTimelineSurvivesAnyEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(anyEvent(), 0, 120).Draw(t, "events")
		timeline := NewTimeline()
		var finished []Turn
		var old []Snapshot
		var texts []string
		for _, e := range events {
			finished = append(finished, timeline.Apply(e)...)
			s := timeline.Snapshot()
			checkSnapshot(t, s)
			old, texts = append(old, s), append(texts, describe(s))
		}
		ended := timeline.EndOpen(rapid.Float64Range(-1, 12).Draw(t, "close"))
		if !slices.IsSortedFunc(ended, byStart) {
			t.Fatalf("the turns that the end finished are not in order: %v", ended)
		}
		finished = append(finished, ended...)
		last := timeline.Snapshot()
		checkSnapshot(t, last)
		for _, l := range last.Lanes {
			if l.Open {
				t.Fatalf("%s is open after the end", l.Speaker)
			}
		}
		if all := sortTurns(last.Turns()); !slices.Equal(sortTurns(finished), all) {
			t.Fatalf("returned as finished: %v, kept: %v", finished, all)
		}
		if c := last.Counts; c.Events != int64(len(events)) {
			t.Fatalf("%d events, counted %d", len(events), c.Events)
		}
		for i, s := range old {
			if describe(s) != texts[i] {
				t.Fatalf("snapshot %d has changed from\n%s\nto\n%s", i, texts[i], describe(s))
			}
		}
	})
}

// Legal events must come out as they went in, and none may count as degenerate.
func TestTimelineKeepsLegalTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []Turn
		var events []Event
		for i := range rapid.IntRange(1, 8).Draw(t, "speakers") {
			at := 0
			for range rapid.IntRange(1, 10).Draw(t, "turns") {
				start := at + rapid.IntRange(0, 3000).Draw(t, "pause")
				at = start + rapid.IntRange(1, 5000).Draw(t, "length")
				turn := Turn{Speaker: SpeakerLabel(i), Start: float64(start) / 1000, End: float64(at) / 1000}
				want = append(want, turn)
				events = append(events, NewSpeakerEvent(TypeSpeakerStart, turn.Start, turn.Speaker), NewSpeakerEvent(TypeSpeakerEnd, turn.End, turn.Speaker))
			}
		}
		slices.SortStableFunc(events, func(a, b Event) int { return int(math.Round((a.Timestamp - b.Timestamp) * 1000)) })
		timeline := NewTimeline()
		for _, e := range events {
			timeline.Apply(e)
		}
		s := timeline.Snapshot()
		if got := sortTurns(s.Turns()); !slices.Equal(got, sortTurns(want)) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if s.Counts.Degenerate != 0 || s.Counts.Events != int64(len(events)) || s.Decided != events[len(events)-1].Timestamp {
			t.Fatalf("%+v, decided %g", s.Counts, s.Decided)
		}
	})
}

func TestTimelineBoundsLabels(t *testing.T) {
	timeline := NewTimeline()
	for i := range 1000 {
		timeline.Apply(NewSpeakerEvent(TypeSpeakerStart, float64(i), fmt.Sprint("voice", i)))
		timeline.Apply(NewSpeakerEvent(TypeSpeakerEnd, float64(i)+0.5, fmt.Sprint("voice", i)))
	}
	s := timeline.Snapshot()
	if len(s.Lanes) != MaxLabels || s.Counts.Refused != 2*(1000-MaxLabels) || s.Counts.Degenerate != 0 {
		t.Errorf("%d lanes, %+v", len(s.Lanes), s.Counts)
	}
}

func TestTimelineBoundsTurns(t *testing.T) {
	timeline := NewTimeline()
	for i := range MaxTurns + 10 {
		timeline.Apply(Event{Type: TypeSpeakerStart, Timestamp: float64(i), Speaker: "A"})
		timeline.Apply(Event{Type: TypeSpeakerEnd, Timestamp: float64(i) + 0.5, Speaker: "A"})
	}
	if s := timeline.Snapshot(); len(s.Lanes[0].Turns) != MaxTurns || s.Counts.Refused != 10 {
		t.Errorf("%d turns, %+v", len(s.Lanes[0].Turns), s.Counts)
	}
}

func TestTimelineOneWriterManyReaders(t *testing.T) {
	timeline := NewTimeline()
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				s := timeline.Snapshot()
				checkSnapshot(failer{t}, s)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range 400 {
		at := float64(i % 97) // jumps back: copies beside appends
		timeline.Apply(Event{Type: TypeSpeakerStart, Timestamp: at, Speaker: "A"})
		timeline.Apply(Event{Type: TypeSpeakerEnd, Timestamp: at + float64(i%5)/4, Speaker: "A"})
	}
	close(stop)
	readers.Wait()
}

// failer reports from a goroutine that may not call Fatalf.
type failer struct{ t *testing.T }

func (f failer) Fatalf(format string, args ...any) { f.t.Errorf(format, args...) }
