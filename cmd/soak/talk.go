package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"hubbub/capture"
	"hubbub/capture/audiofile"
	"hubbub/localserver/engine"
	"hubbub/localserver/engine/voiceprint"
)

// delay is how far behind the newest sample a turn's start or end is committed, as the
// engine does by default.
const delay = time.Second

// turn is one stretch of speech.
type turn struct {
	who        int
	start, end time.Duration
}

// talk is a synthetic meeting: turns in order of their starts, and the same as
// events in order of time.
type talk struct {
	turns  []turn
	events []engine.Event
}

// converse generates a conversation, always the same one: turns of half a second
// to ten, short pauses, some of the turns overlapping.
func converse(length float64) *talk {
	r := rand.New(rand.NewPCG(11, 1))
	t, free := &talk{}, make([]float64, people) // when each of them has finished
	for at, who := 0.6, 0; at < length-15; {
		duration := 0.4 + 5*r.Float64()*r.Float64()
		if r.IntN(4) == 0 {
			duration += 4 * r.Float64()
		}
		start := max(at, free[who]+0.2)
		end := start + duration
		free[who] = end
		t.turns = append(t.turns, turn{who, seconds(start), seconds(end)})
		t.events = append(t.events,
			engine.Event{Kind: engine.Start, At: seconds(start), Speaker: who},
			engine.Event{Kind: engine.End, At: seconds(end), Speaker: who})
		if at = end + 0.7*r.Float64() - 0.1; r.IntN(5) == 0 {
			at = end - min(1.2, duration/2)
		}
		// The first one to begin is the first label, and so on.
		next := (who + 1 + r.IntN(people-1)) % people
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

// write synthesises the meeting: for each person a tone of another frequency,
// modulated at the rate of syllables.
func (t *talk) write(path string, length float64) error {
	w, err := audiofile.CreateWAV(path)
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
				tone := math.Sin(2 * math.Pi * float64(90+25*x.who) * a)
				second[i] += float32(0.15 * tone * (0.55 + 0.45*math.Sin(2*math.Pi*4*a)))
			}
		}
		if err := w.Write(second); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// scriptedEngine is an engine with known results: it returns the events of a talk
// once it has received their audio.
type scriptedEngine struct {
	talk     *talk
	position time.Duration
	next     int
}

func (t *scriptedEngine) Push(samples []float32, out []engine.Event) []engine.Event {
	t.position += time.Duration(len(samples)) * time.Second / capture.SampleRate
	return t.events(t.position-delay, out)
}

func (t *scriptedEngine) Flush(out []engine.Event) []engine.Event { return t.events(t.position, out) }

// It recognises nobody, and its streams are not resumed.
func (t *scriptedEngine) Enrol([]voiceprint.Person, voiceprint.Matching) {}
func (t *scriptedEngine) AppendSnapshot(out []byte) []byte               { return out }
func (t *scriptedEngine) RestoreSnapshot([]byte) error                   { return errors.ErrUnsupported }

func (t *scriptedEngine) events(until time.Duration, out []engine.Event) []engine.Event {
	for ; t.next < len(t.talk.events) && t.talk.events[t.next].At <= until; t.next++ {
		out = append(out, t.talk.events[t.next])
	}
	return out
}
