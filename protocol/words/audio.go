package words

import (
	"math"
	"slices"
	"sync"

	"hubbub/capture/audiofile"
	"hubbub/protocol"
)

const (
	sampleRate = protocol.SampleRate
	// kept is how much audio is kept, in seconds: 9.6 MB. The beginning of a turn
	// that is longer has no words.
	kept = 300
	// margin is how much audio before and after a turn is recognised with it, in
	// seconds.
	margin = 0.2
	// maxPart is how long a part of a turn may be, in seconds.
	maxPart = 15.0
	// MinTurn is the shortest turn that is recognised, in seconds.
	MinTurn = 0.4
)

// tracks is the newest audio of each track of a session. One goroutine adds it, and one takes that of turns.
type tracks struct {
	of   func(protocol.Turn) int // the track of a turn; nil = there is one
	mu   sync.Mutex
	list []*audio
}

// track is the audio of a track, from 0 on.
func (t *tracks) track(n int) *audio {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.list) <= n {
		t.list = append(t.list, &audio{Recent: audiofile.NewRecent(kept)})
	}
	return t.list[n]
}

func (t *tracks) add(position int64, samples [][]float32) {
	for i, s := range samples {
		t.track(i).Add(position, s)
	}
}

// take is audio.take of the track of a turn.
func (t *tracks) take(turn protocol.Turn) (from float64, parts [][]float32) {
	n := 0
	if t.of != nil {
		n = t.of(turn)
	}
	return t.track(n).take(turn.Start, turn.End)
}

// audio is the newest audio of a track.
type audio struct {
	*audiofile.Recent
	used []span // what was recognised already
}

// span is a stretch in samples.
type span struct{ from, to int64 }

// take returns the audio of a turn, in seconds, with its context, in parts that
// are cut at pauses, and where the first one begins. What another turn has taken
// before is silent, so that the words of overlapping speech are not attributed twice.
// Less than MinTurn gives no parts.
func (a *audio) take(start, end float64) (from float64, parts [][]float32) {
	turn := span{int64(math.Round(start * sampleRate)), int64(math.Round(end * sampleRate))}
	around := int64(margin * sampleRate)
	first, samples := a.Span(turn.from-around, turn.to+around)
	all := span{first, first + int64(len(samples))}
	turn.from, turn.to = max(turn.from, all.from), min(turn.to, all.to)
	if turn.to <= turn.from {
		return 0, nil
	}
	taken := make([]bool, len(samples))
	for _, u := range a.used {
		for n := max(u.from, all.from); n < min(u.to, all.to); n++ {
			samples[n-all.from], taken[n-all.from] = 0, true
		}
	}
	left := 0
	for _, t := range taken[turn.from-all.from : turn.to-all.from] {
		if !t {
			left++
		}
	}
	if float64(left) < MinTurn*sampleRate {
		return 0, nil
	}
	kept := a.Start()
	a.used = append(slices.DeleteFunc(a.used, func(u span) bool { return u.to < kept }), turn)
	return float64(all.from) / sampleRate, cut(samples)
}

// cut cuts samples into parts of at most maxPart, at the quietest moment of the
// second half of each.
func cut(samples []float32) (parts [][]float32) {
	const most, step = int(maxPart * sampleRate), sampleRate / 10
	for len(samples) > most {
		at, quietest := most, math.Inf(1)
		for from := most / 2; from+step <= most; from += step / 2 {
			power := 0.0
			for _, s := range samples[from : from+step] {
				power += float64(s) * float64(s)
			}
			if power < quietest {
				at, quietest = from+step/2, power
			}
		}
		parts = append(parts, samples[:at])
		samples = samples[at:]
	}
	return append(parts, samples)
}
