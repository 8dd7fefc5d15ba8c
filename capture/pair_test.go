package capture

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/capture/device"
	"hubbub/protocol/testkit"
)

// simulated is a device with a clock of its own that plays a signal of real time. Time is that since a test began, in s.
type simulated struct {
	begin, end float64
	rate       float64 // samples per second
	late       func() float64
	signal     func(t float64) float64
	n          int64
}

func (s *simulated) Device() device.Device { return device.Device{Name: "simulated"} }
func (s *simulated) Format() (int, int)    { return SampleRate, 1 }
func (s *simulated) Source() string        { return "" }
func (s *simulated) Close() error          { return nil }

func (s *simulated) Read() ([]float32, bool, error) {
	if s.begin+float64(s.n)/s.rate > s.end {
		return nil, false, errors.New("gone")
	}
	block := make([]float32, ChunkSamples)
	for i := range block {
		block[i] = float32(s.signal(s.begin + float64(s.n+int64(i))/s.rate))
	}
	s.n += ChunkSamples
	time.Sleep(time.Duration((s.begin+float64(s.n)/s.rate+s.late())*float64(time.Second)) - bubbleTime())
	return block, false, nil
}

// open opens the device once, inside a synctest bubble.
func (s *simulated) open(t *testing.T) *microphone {
	t.Helper()
	return openWith(t, "", Mic, bubbleTime, opener(func(string) device.Stream {
		if s.n > 0 {
			return nil
		}
		return s
	}))
}

// openFound opens a microphone of that name, which find opens, inside a synctest bubble.
func openFound(t *testing.T, name string, find func(want string) device.Stream) *microphone {
	t.Helper()
	return openWith(t, name, Mic, bubbleTime, opener(find))
}

// TestPairIsAligned: two devices whose clocks differ stay within 20 ms, although
// blocks arrive late. HUBBUB_HOUR=1 simulates an hour at 200 ppm.
func TestPairIsAligned(t *testing.T) {
	length, ppm := 60.0, 700.0 // a drift of 42 ms
	if os.Getenv("HUBBUB_HOUR") == "1" {
		length, ppm = 3600, 200
	}
	late := func(seed uint64) func() float64 { // a busy machine
		random := rand.New(rand.NewPCG(seed, 2))
		return func() float64 {
			if random.Float64() < 0.05 {
				return 0.02 + 0.1*random.Float64()
			}
			return 0.01 + 0.004*random.Float64()
		}
	}
	const hz = 10 // one period is 100 ms
	signal := func(t float64) float64 { return 0.5 * math.Sin(2*math.Pi*hz*t) }
	for _, sign := range []float64{-1, 1} {
		synctest.Test(t, func(t *testing.T) {
			first := &simulated{begin: 1, rate: SampleRate, late: late(1), signal: signal, end: 2 * length}
			second := &simulated{begin: 0.73, rate: SampleRate * (1 + sign*ppm*1e-6), late: late(2), signal: signal, end: 2 * length}
			p := newPair(first.open(t), second.open(t))
			defer p.Close()
			p.echo = nil
			x := make([]float32, 2*ChunkSamples)
			var worst, since float64
			for at := 0.0; at < length; at += ChunkDuration.Seconds() {
				n, err := p.Read(t.Context(), x)
				if err != nil || n != len(x) {
					t.Fatalf("%d samples, %v", n, err)
				}
				var phase [2]float64
				for track := range phase {
					var c, s float64
					for i := range ChunkSamples { // one period
						b, a := math.Sincos(2 * math.Pi * hz * float64(i) / SampleRate)
						c += a * float64(x[2*i+track])
						s += b * float64(x[2*i+track])
					}
					phase[track] = math.Atan2(c, s)
				}
				d := math.Remainder(phase[0]-phase[1], 2*math.Pi) / (2 * math.Pi * hz)
				if at > 1 {
					if worst = max(worst, math.Abs(d)); worst == math.Abs(d) {
						since = at
					}
				}
			}
			t.Logf("%+.0f ppm over %.0f s: at most %.1f ms apart, at %.0f s", sign*ppm, length, 1000*worst, since)
			if worst > 0.02 {
				t.Errorf("%+.0f ppm: the tracks are up to %.1f ms apart", sign*ppm, 1000*worst)
			}
		})
	}
}

// TestPairSilencesEcho: an echo is silenced also where the blocks of the microphone do not begin with a chunk, as those
// of a device of another rate.
func TestPairSilencesEcho(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	noise := make([]float64, 20*SampleRate)
	for i := range noise {
		noise[i] = 0.3 * random.NormFloat64()
	}
	far := func(t float64) float64 { return noise[int(math.Round((t-1)*SampleRate))%len(noise)] }
	none := func() float64 { return 0 }
	synctest.Test(t, func(t *testing.T) {
		first := (&simulated{begin: 1, rate: SampleRate, late: none, signal: func(t float64) float64 { return 0.2 * far(t) }, end: 16}).open(t)
		second := (&simulated{begin: 1, rate: SampleRate, late: none, signal: far, end: 16}).open(t)
		p := newPair(first, second)
		defer p.Close()
		if _, err := first.Read(t.Context(), make([]float32, 25)); err != nil { // the block of a chunk is 25 samples off
			t.Fatal(err)
		}
		heard, all := 0, 0
		for c := range NewChunkReader(t.Context(), p, Realtime).Chunks() {
			if c.Seq < 50 {
				continue
			}
			if c.Seq == 100 {
				break
			}
			for _, x := range c.Apart()[0] {
				all++
				if x != 0 {
					heard++
				}
			}
		}
		if share := float64(heard) / float64(all); share > 0.02 {
			t.Errorf("%.1f %% of the echo are heard", 100*share)
		}
	})
}

// TestPairSilence: a muted microphone is reported while the far side plays, by its own name; a far side that plays
// nothing is not.
func TestPairSilence(t *testing.T) {
	for _, muted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			open := func(name string, kind Kind, silent bool) *microphone {
				d := speaking(0, 0)
				if silent {
					d.tone = nil
				}
				return openWith(t, name, kind, bubbleTime, is(d))
			}
			r := NewChunkReader(t.Context(), newPair(open("desk", Mic, muted), open("output", Speakers, !muted)), Realtime)
			for c := range r.Chunks() {
				if c.Seq == 10*silenceAfter/8 {
					break
				}
			}
			if s := r.Stats(); s.Silence != NotSilent != muted || muted && s.Silent != "desk" {
				t.Errorf("muted %t: silence %v of %q", muted, s.Silence, s.Silent)
			}
		})
	}
}

// TestSilentDeviceIsLost: a muted device that is lost, alone or beside another one, is not said to have sound before.
func TestSilentDeviceIsLost(t *testing.T) {
	for _, two := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			lost := openWith(t, "", Mic, bubbleTime, is(&fakeDevice{rate: 44100, channels: 1, failAt: 100, period: ChunkDuration})) // within a chunk of 16 kHz
			var src Source = lost
			if two {
				src = newPair(lost, openWith(t, "", Mic, bubbleTime, is(speaking(0, 0))))
			}
			r, muted := NewChunkReader(t.Context(), src, Realtime), false
			for c := range r.Chunks() {
				s := r.Stats()
				if muted && s.Silence == NotSilent && s.Outage == nil {
					t.Errorf("two devices: %t: chunk %d has sound", two, c.Seq)
				}
				if muted = muted || s.Silence == Muted; s.Outage != nil {
					break
				}
			}
			if !muted {
				t.Errorf("two devices: %t: the silence is not noticed", two)
			}
		})
	}
}

// TestPairReturns: when the default device stands in for one of two, the first one is used again when it is back. It does
// not stand in if it is the other one.
func TestPairReturns(t *testing.T) {
	for _, byDefault := range []string{"desk", "output"} {
		synctest.Test(t, func(t *testing.T) {
			desk := speaking(0, 0)
			desk.name = byDefault
			p := newPair(openFound(t, "headset", comesBack(desk)), openFound(t, "output", func(string) device.Stream { return speaking(0, 0) }))
			r, end := readPair(t, p, func(r *ChunkReader, _ Chunk) {
				if s := r.Stats(); s.Outage != nil && s.Device != "headset + output" {
					t.Errorf("during the outage the device is %q", s.Device)
				}
			})
			wait(20 * time.Second)
			if s := r.Stats(); byDefault == "desk" && (s.Device != "desk + output" || s.StandsIn != "headset") ||
				byDefault == "output" && (s.Device != "headset + output" || s.Outage == nil || s.Outage.Device != "headset") {
				t.Errorf("%+v", s)
			}
			wait(12 * time.Second)
			s := r.Stats()
			if s.Device != "headset + output" || s.StandsIn != "" || s.Outage != nil || desk.closed.Load() == 0 {
				t.Errorf("%+v, the stand-in was closed %d times", s, desk.closed.Load())
			}
			if late := 32*time.Second - s.Position; late > 500*time.Millisecond {
				t.Errorf("the audio is %v late", late)
			}
			end()
		})
	}
}

// TestPairReturnsInAnOutage: a device that is back takes the place of its stand-in. The other one is lost as before.
func TestPairReturnsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(openFound(t, "headset", comesBack(speaking(0, 0))), openFound(t, "output", func(string) device.Stream {
			if bubbleTime() > 0 {
				return nil
			}
			return speaking(201, 0)
		}))
		since := map[time.Duration]bool{}
		r, end := readPair(t, p, func(r *ChunkReader, _ Chunk) {
			if o := r.Stats().Outage; o != nil && o.Device == "output" {
				since[o.Since] = true
			}
		})
		wait(40 * time.Second)
		s := r.Stats()
		end()
		if s.StandsIn != "" || s.Outage == nil || len(since) != 1 || len(s.Gaps) != 2 { // of the headset, and of the output at the end
			t.Errorf("%+v, outages of the output since %v", s, since)
		}
		if late := 40*time.Second - s.Position; late > 500*time.Millisecond || late < -500*time.Millisecond {
			t.Errorf("the audio is %v late", late)
		}
	})
}

// TestPairLosesTheStandIn: a stand-in that is lost, too, is reopened, and does not give way at the same time.
func TestPairLosesTheStandIn(t *testing.T) {
	standIn := openFake(t, speaking(2, 0), time.Minute)
	m := &reopener{microphone: standIn, wanted: device.Device{Name: "headset"}, other: &reopener{}}
	ctx, cancel := context.WithCancel(t.Context())
	m.cancel = cancel
	x := make([]float32, ChunkSamples)
	for m.lost == nil {
		testkit.Must(m.Read(t.Context(), x))(t)
	}
	if ctx.Err() == nil {
		t.Error("the lost device gives way while it is reopened")
	}
	testkit.NoError(t, m.Close())
}

// TestPairFailsWithinABlock: when both devices have failed, silence follows what was read of the one that failed last.
func TestPairFailsWithinABlock(t *testing.T) {
	none := func() float64 { return 0 }
	loud := func(float64) float64 { return 0.5 }
	for failing := range 2 {
		synctest.Test(t, func(t *testing.T) {
			first := &simulated{begin: 1, rate: SampleRate, late: none, signal: loud, end: 3.5}
			second := &simulated{begin: 0.98, rate: SampleRate, late: none, signal: loud, end: 3.5}
			[]*simulated{first, second}[failing].end = 4
			desk := first.open(t)
			p := newPair(desk, second.open(t))
			defer p.Close()
			p.echo = nil
			if _, err := desk.Read(t.Context(), make([]float32, 640)); err != nil { // its blocks are not those of Read
				t.Fatal(err)
			}
			x := make([]float32, 2*ChunkSamples)
			frames := 0
			for p.first.lost == nil || p.second.lost == nil {
				n := testkit.Must(p.Read(t.Context(), x))(t)
				frames += n / 2
			}
			if p.first.samples != int64(frames) {
				t.Errorf("device %d fails last: of %d samples %d are counted", failing, frames, p.first.samples)
			}
			var heard [2]int
			for i, v := range x {
				if v > 0.25 {
					heard[i%2]++
				}
			}
			if heard[1-failing] != 0 || heard[failing] < ChunkSamples/4 || heard[failing] > ChunkSamples*3/4 {
				t.Errorf("device %d fails last: %d samples of the tracks are heard", failing, heard)
			}
		})
	}
}

// TestPairSleeps: two devices whose program was stopped are one gap, and the clock is the wall clock. The
// blocks of the second are later or earlier than those of the first.
func TestPairSleeps(t *testing.T) {
	for at := time.Duration(0); at < 2*ChunkDuration; at += ChunkDuration / 4 {
		synctest.Test(t, func(t *testing.T) {
			var asleep atomic.Int64
			elapsed := func() time.Duration { return bubbleTime() + time.Duration(asleep.Load()) }
			open := func(name string) *microphone {
				return openWith(t, name, Mic, elapsed, opener(func(string) device.Stream { return speaking(0, 0) }))
			}
			second := open("output")
			wait(at)
			p := newPair(open("desk"), second)
			r, end := readPair(t, p, func(*ChunkReader, Chunk) {})
			wait(5 * time.Second)
			asleep.Store(int64(10 * time.Second))
			wait(10 * time.Second)
			s := r.Stats()
			if s.Outage != nil || math.Abs(s.Position.Seconds()-25) > 0.4 {
				t.Errorf("the second is %v earlier: %+v", at, s)
			}
			end()
		})
	}
}

// TestPairOutages: when one of two devices fails, its track is silence until it is back, the other one's goes on, and
// the state names the one that failed. When both fail, the pair continues with the first one that is back.
func TestPairOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// open is a device that fails after failAt, and at each opening in the gaps that follow.
		open := func(name string, failAt []float64, back []float64) *microphone {
			return openFound(t, name, func(string) device.Stream {
				now := bubbleTime().Seconds()
				for i := range failAt {
					switch {
					case now < failAt[i]:
						return speaking(int(10*(failAt[i]-now))+1, 0)
					case now < back[i]:
						return nil
					}
				}
				return speaking(0, 0)
			})
		}
		p := newPair(open("desk", []float64{3, 15}, []float64{8, 24}), open("output", []float64{12}, []float64{20}))
		var chunks []Chunk
		r, end := readPair(t, p, func(_ *ChunkReader, c Chunk) { chunks = append(chunks, c) })
		for _, c := range []struct {
			at     time.Duration
			outage bool
			device string
		}{
			{2, false, ""}, {6, true, "desk"}, {11, false, ""}, {14, true, "output"}, {18, true, ""}, {23, true, "desk"}, {28, false, ""},
		} {
			wait(c.at*time.Second - bubbleTime())
			o := r.Stats().Outage
			if (o != nil) != c.outage || o != nil && o.Device != c.device {
				t.Errorf("after %d s the outage is %+v, want %+v", c.at, o, c)
			}
		}
		st := r.Stats()
		if len(st.Gaps) != 4 || math.Abs(st.Position.Seconds()-28) > 0.4 {
			t.Errorf("at %v, gaps %v", st.Position, st.Gaps)
		}
		end()
		for _, c := range chunks {
			at := chunkSeconds(c.Seq)
			for track, lost := range [][]Gap{{{3, 8}, {15, 24}}, {{12, 20}}} {
				sound, want, known := measure(c.Tracks[track*ChunkSamples:(track+1)*ChunkSamples]).RMS > 0.1, true, true
				for _, g := range lost {
					want = want && (at < g.Start || at > g.End)
					// It fails within a chunk, and is opened once a second.
					known = known && (at < g.Start-0.5 || at > g.Start+0.1) && (at < g.End || at > g.End+1.5)
				}
				if known && sound != want {
					t.Errorf("track %d at %.1f s: sound %v", track, at, sound)
				}
			}
		}
	})
}

// readPair reads a pair, without echo suppression, and gives each chunk to do, until end.
func readPair(t *testing.T, p *pair, do func(*ChunkReader, Chunk)) (r *ChunkReader, end func()) {
	p.echo = nil
	ctx, cancel := context.WithCancel(t.Context())
	r = NewChunkReader(ctx, p, Realtime)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c := range r.Chunks() {
			do(r, c)
		}
	}()
	return r, func() {
		cancel()
		<-done
	}
}

// TestPairLostAgainAndAgain: the clock stays near that of the wall while two devices are lost every two seconds, also both
// at once.
func TestPairLostAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var returns atomic.Int64
		returns.Store(-2) // without the first opening of each
		open := func(name string, seed uint64) *microphone {
			opened, random := 0, rand.New(rand.NewPCG(seed, 1))
			return openFound(t, name, func(string) device.Stream {
				if opened++; opened > 1 && random.IntN(3) == 0 {
					return nil
				}
				returns.Add(1)
				return speaking(10+random.IntN(20), 0)
			})
		}
		second := open("output", 1)
		wait(ChunkDuration / 3)
		p := newPair(open("desk", 0), second)
		r, end := readPair(t, p, func(*ChunkReader, Chunk) {})
		wait(time.Minute)
		// Each return of a device may cost 100 ms.
		if ahead := r.Stats().Position - bubbleTime(); ahead < -time.Duration(returns.Load())*ChunkDuration || ahead > 500*time.Millisecond {
			t.Errorf("after a minute and %d returns the clock is ahead by %v", returns.Load(), ahead)
		}
		end()
	})
}
