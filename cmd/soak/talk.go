package main

import (
	"context"
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

// converse generates the events of a conversation in order of time, always the same
// ones: turns of half a second to ten, short pauses, some of the turns overlapping.
func converse(length float64) (events []engine.Event) {
	r := rand.New(rand.NewPCG(11, 1))
	free := make([]float64, people) // when each of them has finished
	for at, who, turns := 0.6, 0, 0; at < length-15; {
		duration := 0.4 + 5*r.Float64()*r.Float64()
		if r.IntN(4) == 0 {
			duration += 4 * r.Float64()
		}
		start := max(at, free[who]+0.2)
		end := start + duration
		free[who] = end
		events = append(events,
			engine.Event{Kind: engine.Start, At: seconds(start), Speaker: who},
			engine.Event{Kind: engine.End, At: seconds(end), Speaker: who})
		if at = end + 0.7*r.Float64() - 0.1; r.IntN(5) == 0 {
			at = end - min(1.2, duration/2)
		}
		// The first one to begin is the first label, and so on.
		who = (who + 1 + r.IntN(people-1)) % people
		if turns++; turns < people {
			who = turns
		}
	}
	slices.SortStableFunc(events, func(a, b engine.Event) int { return int(a.At - b.At) })
	return events
}

func seconds(s float64) time.Duration {
	return time.Duration(math.Round(s*1000)) * time.Millisecond
}

// writeAudio writes the demo conversation, repeated: its level is that of speech.
func writeAudio(ctx context.Context, path string, length time.Duration) error {
	w, err := audiofile.CreateWAV(path)
	if err != nil {
		return err
	}
	speech, err := capture.DemoSpeech(ctx, 30)
	for left := int(length.Seconds()) * capture.SampleRate; err == nil && left > 0; left -= len(speech) {
		err = w.Write(speech[:min(len(speech), left)])
	}
	return errors.Join(err, w.Close())
}

// scriptedEngine is an engine with known results: it returns the events of a
// conversation once it has received their audio.
type scriptedEngine struct {
	script   []engine.Event // that are left
	position time.Duration
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
	for ; len(t.script) > 0 && t.script[0].At <= until; t.script = t.script[1:] {
		out = append(out, t.script[0])
	}
	return out
}
