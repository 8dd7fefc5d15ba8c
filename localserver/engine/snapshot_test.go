package engine

import (
	"bytes"
	"errors"
	"testing"

	"hubbub/localserver/engine/enginetest"
	"hubbub/protocol/testkit"
)

// labels are the active labels of each frame, a bit for each label.
func labels(events []Event, frames int, out []uint8) []uint8 {
	var open uint8
	for i := range frames {
		for len(events) > 0 && int(events[0].At/frameDuration) <= i {
			if events[0].Kind == Start {
				open |= 1 << events[0].Speaker
			} else {
				open &^= 1 << events[0].Speaker
			}
			events = events[1:]
		}
		out = append(out, open)
	}
	return out
}

// agreement is the part of the frames with speech, from one frame on, in which
// two runs have the same people.
func agreement(a, b []uint8, from int) float64 {
	same, all := 0, 0
	for i := from; i < len(a); i++ {
		if a[i]|b[i] != 0 {
			all++
			if a[i] == b[i] {
				same++
			}
		}
	}
	return float64(same) / float64(all)
}

// A stream that continues with the speakers of an earlier one gives the same labels
// as one that was never interrupted; without the snapshot it does not.
func TestSnapshotKeepsTheLabels(t *testing.T) {
	if testing.Short() {
		t.Skip("2.6 s of CPU")
	}
	x := enginetest.Demo(t)
	run := func(e *Engine, x []float32) []Event { return e.Flush(e.Push(x, nil)) }
	fresh := func() *Engine { return testkit.Must(New(Config{}))(t) }
	// One run in one, which leaves a snapshot at each cut.
	type cut struct {
		seconds, again float64
		snapshot       []byte
	}
	cuts := []*cut{
		{11, 2.5, nil}, // as a client retransmits what may not be committed; only two people have talked
		{30, 0, nil}, {47, 0, nil},
	}
	first, pushed := fresh(), 0
	var events []Event
	for _, c := range cuts {
		at := int(c.seconds * SampleRate)
		events = first.Push(x[pushed:at], events)
		c.snapshot, pushed = first.AppendSnapshot(nil), at
		t.Logf("after %g s a snapshot has %d bytes", c.seconds, len(c.snapshot))
	}
	whole := labels(first.Flush(first.Push(x[pushed:], events)), len(x)/frameSamples, nil)
	for _, c := range cuts {
		seconds, cut, again := c.seconds, int(c.seconds*SampleRate), int(c.again*SampleRate)
		snapshot, head := c.snapshot, whole[:cut/frameSamples]
		second := fresh()
		testkit.NoError(t, second.RestoreSnapshot(snapshot))
		rest, from := (len(x)-cut)/frameSamples, cut/frameSamples
		tail := labels(run(second, x[cut-again:]), rest+again/frameSamples, nil)
		resumed := append(append([]uint8(nil), head...), tail[again/frameSamples:]...)
		if got := agreement(whole, resumed, from); got < 0.9 {
			t.Errorf("cut at %g s: %.1f %% of the speech after it has the labels of the run in one", seconds, 100*got)
		} else {
			t.Logf("cut at %g s: %.1f %% of the speech after it has the labels of the run in one", seconds, 100*got)
		}
		if seconds == 30 {
			without := labels(run(fresh(), x[cut:]), rest, append([]uint8(nil), head...))
			if got := agreement(whole, without, from); got > 0.8 {
				t.Errorf("without the snapshot %.1f %% have the same labels: this test shows nothing", 100*got)
			}
		}
	}
}

func TestBadSnapshots(t *testing.T) {
	e := testkit.Must(New(Config{}))(t)
	e.Push(dialogue(t), nil)
	good := e.AppendSnapshot(nil)
	if len(good) > 192<<10 { // 8 speakers and 600 segments; the store takes 256 KiB
		t.Errorf("%d bytes", len(good))
	}
	fresh := func() *Engine { return testkit.Must(New(Config{}))(t) }
	testkit.NoError(t, fresh().RestoreSnapshot(good))
	for i := range good {
		if i > 60 && i < len(good)-60 && i%97 != 0 {
			continue
		}
		bad := append([]byte(nil), good...)
		bad[i] ^= 4
		f := fresh()
		if err := f.RestoreSnapshot(bad); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if i == 0 {
			if !bytes.Equal(f.AppendSnapshot(nil), fresh().AppendSnapshot(nil)) {
				t.Error("a refused snapshot was restored in part")
			}
		}
		if i%50 == 0 {
			if err := fresh().RestoreSnapshot(good[:i]); !errors.Is(err, ErrSnapshot) {
				t.Fatalf("cut to %d bytes: %v", i, err)
			}
		}
	}
}
