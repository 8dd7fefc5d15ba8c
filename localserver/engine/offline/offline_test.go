package offline

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/decoder"
	"hubbub/localserver/engine/enginetest"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// person makes embeddings of one voice: a random direction with noise.
type person struct {
	voice [clustering.Dim]float64
	r     *rand.Rand
}

func people(n int) (list []person) {
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		p := person{r: r}
		for i := range p.voice {
			p.voice[i] = r.NormFloat64()
		}
		list = append(list, p)
	}
	return list
}

func (p *person) say() clustering.Embedding {
	v := p.voice
	for i := range v {
		v[i] += 0.3 * p.r.NormFloat64()
	}
	return clustering.Unit(&v)
}

// addMultiscale adds those that a window completes to it. talking gives those of a frame;
// a second one may be negative.
func addMultiscale(w *clustering.Window, voices []person, talking func(frame int) (int, int)) {
	first := w.First + windowFrames - hopFrames
	if w.First == 0 {
		first = 0
	}
	for frame := first; frame < w.First+windowFrames; frame++ {
		if frame%(decoder.Split*clustering.MultiscaleHop) != 0 {
			continue
		}
		s := clustering.MultiscaleEmbedding{Step: frame / decoder.Split}
		if a, b := talking(frame); a >= 0 && b < 0 {
			for i := range s.Embeddings {
				s.Embeddings[i] = voices[a].say()
			}
		}
		w.Multiscale = append(w.Multiscale, s)
	}
}

// meeting is a recording in which those of talking(i) talk in second i; both talk where a
// second one is not negative.
func meeting(t *testing.T, o Options, voices []person, seconds int, talking func(second int) (int, int)) *Result {
	t.Helper()
	return finish(t, added(t, o, voices, seconds, talking))
}

func finish(t *testing.T, r *Recording) *Result {
	t.Helper()
	return testkit.Must(r.Finish(context.Background()))(t)
}

// added is the recording of a meeting that is not finished. Each second of a speaker is a segment.
func added(t *testing.T, o Options, voices []person, seconds int, talking func(second int) (int, int)) *Recording {
	t.Helper()
	r := testkit.Must(New(o))(t)
	const second = windowFrames / 5
	for end := windowFrames; end <= seconds*second; end += hopFrames {
		w := &clustering.Window{First: end - windowFrames, SpeechProbability: make([]float32, windowFrames)}
		local := map[int]int{}
		for i := range windowFrames {
			a, b := talking((w.First + i) / second)
			for _, who := range []int{a, b} {
				if who < 0 {
					continue
				}
				w.SpeechProbability[i] = 1
				k, known := local[who]
				if !known {
					k = len(w.Speakers)
					local[who] = k
					w.Speakers = append(w.Speakers, clustering.LocalSpeaker{Activity: make([]float32, windowFrames)})
				}
				l := &w.Speakers[k]
				l.Activity[i] = 1
				if n := len(l.Segments); n == 0 {
					l.Segments = []clustering.Segment{{To: windowFrames, Embedding: voices[who].say()}}
				} else if (w.First+i)%second == 0 {
					l.Segments[n-1].To = i
					l.Segments = append(l.Segments, clustering.Segment{From: i, To: windowFrames, Embedding: voices[who].say()})
				}
				s := &l.Segments[len(l.Segments)-1]
				s.Duration += frameSeconds
				s.Centre = i - int(s.Duration/frameSeconds/2)
			}
		}
		addMultiscale(w, voices, func(frame int) (int, int) { return talking(frame / second) })
		r.Add(w, end == seconds*second)
	}
	return r
}

// alternating people talk for 4 s each.
func alternating(people int) func(int) (int, int) {
	return func(second int) (int, int) { return second / 4 % people, -1 }
}

func TestSpeakersAreFound(t *testing.T) {
	for _, n := range []int{1, 2, 5, 20} {
		r := meeting(t, Options{}, people(n), 12*n, alternating(n))
		if r.Speakers != n || len(r.Turns) != 3*n && n > 1 {
			t.Errorf("%d people: %d speakers, %d turns", n, r.Speakers, len(r.Turns))
		}
		for i, turn := range r.Turns {
			if n > 1 && turn.Speaker != i%n {
				t.Errorf("%d people: turn %d is of speaker %d", n, i, turn.Speaker)
			}
		}
	}
}

func TestOptionsBoundTheCount(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want int
		hint string // of the error
	}{
		{o: Options{Speakers: 2}, want: 2},
		{o: Options{Speakers: 3}, want: 3},
		{o: Options{Speakers: 6}, want: 4}, // who cannot be told apart
		{o: Options{MaxSpeakers: 1}, want: 1},
		{o: Options{MinSpeakers: 2, MaxSpeakers: 8}, want: 4},
		{o: Options{MinSpeakers: 3, MaxSpeakers: 2}, hint: "not above the maximum"},
		{o: Options{Speakers: 3, MaxSpeakers: 2}, hint: "or bounds"},
		{o: Options{Speakers: 1, MinSpeakers: 2}, hint: "or bounds"},
		{o: Options{Speakers: 21}, hint: "1 to 20"},
		{o: Options{MinSpeakers: -1}, hint: "1 to 20"},
	} {
		if c.hint != "" {
			_, err := New(c.o)
			testkit.Contains(t, hint.Of(err), c.hint, c.o)
			continue
		}
		// Four people talk.
		r := meeting(t, c.o, people(6), 96, alternating(4))
		if r.Speakers != c.want {
			t.Errorf("%+v: %d speakers", c.o, r.Speakers)
		}
	}
}

func TestExclusiveTurnsDoNotOverlap(t *testing.T) {
	r := meeting(t, Options{}, people(2), 24, func(second int) (int, int) {
		if second%8 == 4 {
			return 0, 1
		}
		return second / 4 % 2, -1
	})
	both := func(list []Turn) (seconds float64) {
		for i, a := range list {
			for _, b := range list[:i] {
				seconds += max(0, min(a.End, b.End)-max(a.Start, b.Start))
			}
		}
		return seconds
	}
	if s := both(r.Turns); s < 2 || s > 4 {
		t.Errorf("%.2f s of overlap, want about 3", s)
	}
	if s := both(r.Exclusive); s != 0 {
		t.Errorf("%.2f s of overlap in exclusive turns", s)
	}
}

// TestManyItems: more clusters than one agglomeration takes are reduced first.
func TestManyItems(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	r := meeting(t, Options{}, people(3), 2000, alternating(3))
	if r.Speakers != 3 || len(r.Turns) != 500 {
		t.Errorf("%d speakers, %d turns", r.Speakers, len(r.Turns))
	}
}

func TestSilenceHasNoTurns(t *testing.T) {
	for _, samples := range []int{0, 1, 320, hopSamples, 5 * hopSamples} {
		r := testkit.Must(New(Options{}))(t)
		r.Push(make([]float32, samples))
		result, err := r.Finish(context.Background())
		if err != nil || len(result.Turns) != 0 || result.Speakers != 0 {
			t.Errorf("%d samples: %+v, %v", samples, result, err)
		}
	}
}

// TestTurnsEndWithTheAudio: the networks' last step may reach beyond it, or end a frame before it.
func TestTurnsEndWithTheAudio(t *testing.T) {
	x := enginetest.Demo(t)[14*SampleRate:] // somebody talks
	for _, samples := range []int{48000, 48100, 48319, 48320, 48500, 48639} {
		r := testkit.Must(New(Options{}))(t)
		r.Push(x[:samples])
		result, err := r.Finish(context.Background())
		if err != nil || len(result.Turns) == 0 {
			t.Fatalf("%d samples: %d turns, %v", samples, len(result.Turns), err)
		}
		frames := samples / frameSamples
		if n := len(result.Confidence()); n != frames {
			t.Errorf("%d samples: %d frames have a confidence, want %d", samples, n, frames)
		}
		for _, list := range [][]Turn{result.Turns, result.Exclusive} {
			last := list[0]
			for _, turn := range list {
				if turn.End > last.End {
					last = turn
				}
			}
			if last.End != float64(frames)*frameSeconds {
				t.Errorf("%d samples are %.3f s, the last turn ends at %.3f s", samples, float64(samples)/SampleRate, last.End)
			}
			if p := result.Speaking(last.End-frameSeconds, last.End); !(p[last.Speaker] > 0.5) {
				t.Errorf("%d samples: speaker %d talks in the last frame with the probability %v", samples, last.Speaker, p)
			}
		}
	}
}

// TestPushChunks: the result does not depend on how the samples are divided.
func TestPushChunks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	samples := make([]float32, 12*SampleRate+77)
	for i := range samples {
		if i/SampleRate%3 > 0 {
			samples[i] = float32(0.3 * math.Sin(float64(i)*0.05*float64(1+i/SampleRate/4)) * r.Float64())
		}
	}
	var want *Recording
	for _, chunk := range []int{len(samples), 1600, 12345} {
		p := testkit.Must(New(Options{}))(t)
		for c := range slices.Chunk(samples, chunk) {
			p.Push(c)
		}
		testkit.Must(p.Finish(context.Background()))(t)
		if want == nil {
			want = p
			if len(p.windows) < 10 {
				t.Fatalf("%d windows", len(p.windows))
			}
			continue
		}
		if len(p.windows) != len(want.windows) {
			t.Fatalf("%d windows, want %d", len(p.windows), len(want.windows))
		}
		for i := range p.windows {
			if !slices.Equal(p.windows[i].speech, want.windows[i].speech) {
				t.Fatalf("chunks of %d: window %d differs", chunk, i)
			}
		}
	}
}

// TestCancel: Finish can be interrupted at its beginning and while it decodes.
func TestCancel(t *testing.T) {
	for _, after := range []float64{0, clusteringShare} {
		r := testkit.Must(New(Options{}))(t)
		r.Push(make([]float32, 3*pageFrames*frameSamples))
		ctx, cancel := context.WithCancel(context.Background())
		last := 0.0
		r.Progress = func(share float64) {
			if last = share; share >= after {
				cancel()
			}
		}
		if _, err := r.Finish(ctx); !errors.Is(err, context.Canceled) || last != after {
			t.Errorf("at %g: %v, last %g", after, err, last)
		}
	}
}

// TestAgglomerate compares with the plain algorithm.
func TestAgglomerate(t *testing.T) {
	voices := people(5)
	var clusters []cluster
	for i := range 40 {
		e := voices[i*i%5].say()
		clusters = append(clusters, clusterOf(&e, 1+float64(i%3)))
	}
	p := Default()
	plain := slices.Clone(clusters)
	var want []cluster
	for range 35 {
		a, b := 0, 1
		for i := range plain {
			for j := range i {
				if p.excess(&plain[i], &plain[j]) > p.excess(&plain[b], &plain[a])+1e-6 {
					a, b = j, i
				}
			}
		}
		plain[a].add(&plain[b])
		plain = slices.Delete(plain, b, b+1)
	}
	want = plain
	merges, got := agglomerate(slices.Clone(clusters), 5, p.excess)
	if len(merges) != 35 || len(got) != 5 {
		t.Fatalf("%d merges, %d left", len(merges), len(got))
	}
	again := apply(slices.Clone(clusters), merges)
	for i := range want {
		for name, c := range map[string]*cluster{"agglomerate": &got[i], "apply": &again[i]} {
			if math.Abs(c.duration-want[i].duration) > 1e-9 || c.cosine(&want[i]) < 0.999 {
				t.Errorf("%s: cluster %d has %v s, want %v", name, i, c.duration, want[i].duration)
			}
		}
	}
}
