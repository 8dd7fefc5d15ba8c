// Package tuitest has made-up sessions, connections and a player for the tests of
// displays. The same arguments give the same session.
package tuitest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"hubbub/protocol"
	"hubbub/tui/display"
)

// Turns are the turns of people who mostly wait for each other and
// sometimes overlap. The same arguments give the same turns.
func Turns(people int, length float64, seed uint64) []protocol.Turn {
	r := rand.New(rand.NewPCG(seed, 1))
	var turns []protocol.Turn
	free := make([]float64, people) // when each of them has finished
	at, who := 0.6, 0
	for at < length {
		d := 0.4 + 5*r.Float64()*r.Float64()
		if r.IntN(4) == 0 {
			d += 4 * r.Float64()
		}
		start := protocol.Round1ms(max(at, free[who]+0.2))
		end := protocol.Round1ms(start + d)
		turns = append(turns, protocol.Turn{Speaker: fmt.Sprintf("SPEAKER_%02d", who), Start: start, End: end})
		free[who] = end
		at = end + 0.7*r.Float64() - 0.1
		if r.IntN(5) == 0 {
			at = end - min(1.2, d/2)
		}
		next := r.IntN(people)
		// At first in order: labels are in order of first speech.
		if seen := len(turns); seen < people {
			next = seen
		} else if next == who {
			next = (next + 1) % people
		}
		who = next
	}
	return turns
}

// Levels are the levels of such a session, in words and pauses.
var Levels = func() []display.Level {
	r := rand.New(rand.NewPCG(3, 4))
	levels := make([]display.Level, 4000*10)
	loud := float32(0)
	for i := range levels {
		if i%7 == 0 {
			loud = 0.25 * r.Float32() * r.Float32()
		}
		rms := loud*(0.6+0.4*r.Float32()) + 0.002
		levels[i] = display.Level{RMS: rms, Peak: min(rms*(3+2*r.Float32()), 1)}
	}
	return levels
}()

// State is the state at a position, with a latency, both in seconds: what
// is older than the latency is decided.
func State(turns []protocol.Turn, position, latency float64) display.State {
	s := display.State{
		Position: position, Sent: position,
		Latency: time.Duration(latency * float64(time.Second)),
		Levels:  Levels[:min(int(position*10), len(Levels))],
		Level:   display.Level{RMS: float32(0.06 + 0.05*math.Sin(position*3)), Peak: float32(0.3 + 0.1*math.Sin(position*3))},
		Source:  "demo conversation", Server: "built-in server",
		Conn: display.Open, ChunksSent: int64(position * 10),
	}
	decided := position - latency
	byLabel := map[string]int{}
	for _, t := range turns {
		if t.Start > decided {
			break
		}
		i, ok := byLabel[t.Speaker]
		if !ok {
			i = len(s.Timeline.Lanes)
			byLabel[t.Speaker] = i
			s.Timeline.Lanes = append(s.Timeline.Lanes, protocol.Lane{Speaker: t.Speaker})
		}
		lane := &s.Timeline.Lanes[i]
		s.Timeline.Decided = max(s.Timeline.Decided, t.Start)
		if t.End > decided {
			lane.Open, lane.OpenSince = true, t.Start
			continue
		}
		s.Timeline.Decided = max(s.Timeline.Decided, t.End)
		lane.Turns = append(lane.Turns, t)
		lane.Talk += t.End - t.Start
	}
	return s
}

// FourSpeakers are the turns of four people in more than an hour.
var FourSpeakers = Turns(4, 4000, 7)

// Player records its calls.
type Player struct {
	Toggled int
	Sought  []float64
	Speed   int
}

func (p *Player) TogglePause() { p.Toggled++ }

func (p *Player) Seek(at float64) { p.Sought = append(p.Sought, at) }

func (p *Player) Faster(n int) { p.Speed += n }

// Memory records its calls.
type Memory struct {
	Calls   []string
	Refused bool
	Failure error
	Fixes   string
	Known   string // the name of which a voice is stored
}

func (f *Memory) Asks() bool              { return !f.Refused }
func (f *Memory) Folder() string          { return "/home/sam/voices" }
func (f *Memory) Stored(name string) bool { return name == f.Known }
func (f *Memory) Never() error            { f.Refused = true; return nil }
func (f *Memory) Correct() (string, error) {
	return f.Fixes, nil
}
func (f *Memory) Remember(label string) (string, error) {
	f.Calls = append(f.Calls, label)
	return "a voiceprint is stored in /home/sam/voices", f.Failure
}

// Stream is the id of a stream.
const Stream = "7c0e9a52-8f4b-4f0a-9c64-1f2b7d1f3a10"
