package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"hubbub/capture"
	"hubbub/localserver/engine"
)

// delay is how far behind the newest sample a turn's edge is told, as the
// engine does by default.
const delay = time.Second

// turn is one stretch of speech.
type turn struct {
	who        int
	start, end time.Duration
}

// talk is a made-up meeting: turns in order of their starts, and the same as
// events in order of time.
type talk struct {
	turns  []turn
	events []engine.Event
}

// converse makes up a lively conversation, the same one every time: turns of
// half a second to ten, short pauses, some of the turns overlapping.
func converse(people int, length float64) *talk {
	r := rand.New(rand.NewPCG(11, 1))
	t, free := &talk{}, make([]float64, people) // when each of them has finished
	for at, who := 0.6, 0; at < length-15; {
		long := 0.4 + 5*r.Float64()*r.Float64()
		if r.IntN(4) == 0 {
			long += 4 * r.Float64()
		}
		start := max(at, free[who]+0.2)
		end := start + long
		free[who] = end
		t.turns = append(t.turns, turn{who, seconds(start), seconds(end)})
		t.events = append(t.events,
			engine.Event{Kind: engine.Start, At: seconds(start), Speaker: who},
			engine.Event{Kind: engine.End, At: seconds(end), Speaker: who})
		if at = end + 0.7*r.Float64() - 0.1; r.IntN(5) == 0 {
			at = end - min(1.2, long/2)
		}
		// The first one to begin is the first label, and so on.
		next := (who + 1 + r.IntN(max(people-1, 1))) % people
		if seen := len(t.turns); seen < people {
			next = seen
		}
		who = next
	}
	slices.SortStableFunc(t.events, func(a, b engine.Event) int { return int(a.At - b.At) })
	return t
}

func seconds(s float64) time.Duration {
	return time.Duration(math.Round(s*1000)) * time.Millisecond
}

// write makes the sound of the meeting: for each person a hum of another
// pitch, louder and softer like syllables.
func (t *talk) write(path string, length float64) error {
	w, err := capture.CreateWAV(path)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(5, 6))
	second := make([]float32, capture.SampleRate)
	from := 0 // turns before it are over
	for s := range int(length) {
		begin, end := time.Duration(s)*time.Second, time.Duration(s+1)*time.Second
		for i := range second {
			second[i] = 0.002 * (2*r.Float32() - 1)
		}
		for from < len(t.turns) && t.turns[from].end < begin-15*time.Second {
			from++
		}
		for _, x := range t.turns[from:] {
			if x.start >= end {
				break
			}
			for i := range second {
				at := begin + time.Duration(i)*time.Second/capture.SampleRate
				if at < x.start || at >= x.end {
					continue
				}
				a := at.Seconds()
				hum := math.Sin(2 * math.Pi * float64(90+25*x.who) * a)
				second[i] += float32(0.15 * hum * (0.55 + 0.45*math.Sin(2*math.Pi*4*a)))
			}
		}
		if err := w.Write(second); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// teller is an engine that has read the script: it tells the events of a talk
// when the audio has come so far.
type teller struct {
	talk  *talk
	heard time.Duration
	next  int
}

func (t *teller) Push(samples []float32, out []engine.Event) []engine.Event {
	t.heard += time.Duration(len(samples)) * time.Second / capture.SampleRate
	return t.tell(t.heard-delay, out)
}

func (t *teller) Flush(out []engine.Event) []engine.Event { return t.tell(t.heard, out) }

func (t *teller) tell(until time.Duration, out []engine.Event) []engine.Event {
	for ; t.next < len(t.talk.events) && t.talk.events[t.next].At <= until; t.next++ {
		out = append(out, t.talk.events[t.next])
	}
	return out
}
