package capture

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/capture/capturetest"
	"hubbub/capture/device"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// outageTest is a stream of a fake microphone, inside a synctest bubble.
type outageTest struct {
	*ChunkReader
	asleep atomic.Int64 // how long the machine was
	opened []string     // wanted names of every attempt to open
	chunks []Chunk
	end    context.CancelFunc
	done   chan struct{}
}

// startOutage reads a microphone of that name, which find opens.
func startOutage(t *testing.T, name string, find func(want string) device.Stream) *outageTest {
	t.Helper()
	x := &outageTest{done: make(chan struct{})}
	now := func() time.Duration { return bubbleTime() + time.Duration(x.asleep.Load()) }
	src := openWith(t, name, Mic, now, opener(func(want string) device.Stream {
		x.opened = append(x.opened, want)
		return find(want)
	}))
	ctx, end := context.WithCancel(t.Context())
	x.end, x.ChunkReader = end, NewChunkReader(ctx, src, Realtime)
	go func() {
		defer close(x.done)
		for c := range x.Chunks() {
			if st := x.Stats(); st.Outage != nil && st.Device != src.Info().Name {
				t.Errorf("the outage of %q is that of %q", src.Info().Name, st.Device)
			}
			x.chunks = append(x.chunks, c)
		}
	}()
	return x
}

// wait lets time pass until everything waits.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// speaking is a device that plays a tone; it fails at a read, or stalls.
func speaking(failAt, stallAt int) *fakeDevice {
	return &fakeDevice{rate: SampleRate, channels: 1, tone: capturetest.Tone(SampleRate, 440, 60*SampleRate), period: ChunkDuration,
		failAt: failAt, stallAt: stallAt, release: make(chan struct{})}
}

// unplugged is a device that fails after 3 s, and is not there any more.
func unplugged(string) device.Stream {
	if bubbleTime() > 0 {
		return nil
	}
	return speaking(31, 0)
}

// comesBack is a headset that fails after 3 s and is back after 25, and a default device.
func comesBack(byDefault *fakeDevice) func(want string) device.Stream {
	return func(want string) device.Stream {
		switch at := bubbleTime(); {
		case at == 0:
			return speaking(31, 0)
		case want == "":
			byDefault.name = cmp.Or(byDefault.name, "desk")
			return byDefault
		case at > 25*time.Second:
			return speaking(0, 0)
		}
		return nil
	}
}

// check verifies that the chunks are in order, sound exactly outside of the gaps,
// and keep up with the wall clock.
func (x *outageTest) check(t *testing.T, length float64) {
	t.Helper()
	st := x.Stats()
	inGap := func(seq int64) bool {
		at := chunkSeconds(seq) + 0.05
		for _, g := range st.Gaps {
			if at > g.Start && at < g.End {
				return true
			}
		}
		return false
	}
	next := int64(0)
	for _, c := range x.chunks {
		if c.Seq < next || c.Valid != ChunkSamples {
			t.Fatalf("chunk %d with %d samples after chunk %d", c.Seq, c.Valid, next-1)
		}
		for ; next < c.Seq; next++ {
			if !inGap(next) {
				t.Fatalf("chunk %d is missing, gaps %v", next, st.Gaps)
			}
		}
		next++
		if sound := c.Level.RMS > 0.1; sound == inGap(c.Seq) {
			t.Fatalf("chunk %d has level %.2f, gaps %v", c.Seq, c.Level.RMS, st.Gaps)
		}
	}
	if d := st.Position.Seconds() - length; d < -0.35 || d > 0.15 {
		t.Errorf("the stream is at %v after %v s", st.Position, length)
	}
}

// TestOutage: a device that fails or stalls is replaced by silence, at the pace of
// the wall clock, and reopened; so is one whose program was stopped or whose
// machine was asleep.
func TestOutage(t *testing.T) {
	for _, c := range []struct {
		name            string
		first           *fakeDevice
		back            time.Duration // when opening works again; 0 = at once
		released, sleep time.Duration // when a stalled read returns; the machine sleeps
		gap             Gap
		reason          string
	}{
		{name: "fails", first: speaking(31, 0), back: 13 * time.Second, gap: Gap{3, 13}, reason: "device unavailable"},
		{name: "stalls", first: speaking(0, 31), back: time.Second, released: 9 * time.Second, gap: Gap{3, 9}},
		{name: "stalls for good", first: speaking(0, 31), back: time.Second, gap: Gap{3, 14.7}},
		{name: "sleeps", first: speaking(0, 0), sleep: time.Hour, gap: Gap{5, 3605}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := c.first
				c.first.release = make(chan struct{})
				defer func() {
					if c.released == 0 {
						close(d.release)
					}
				}()
				x := startOutage(t, "desk", func(want string) device.Stream {
					switch at := bubbleTime(); {
					case at == 0:
						return d
					case at < c.back || want != "desk":
						return nil
					}
					return speaking(0, 0)
				})
				if c.released > 0 {
					time.AfterFunc(c.released, func() { close(d.release) })
				}
				wait(4900 * time.Millisecond)
				if o := x.Stats().Outage; (o != nil) != (c.sleep == 0) || o != nil && o.Reason != c.reason {
					t.Errorf("after 4.9 s the outage is %+v", o)
				}
				x.asleep.Store(int64(c.sleep))
				wait(15*time.Second + 100*time.Millisecond)
				st := x.Stats()
				if len(st.Gaps) != 1 || st.Outage != nil || st.Device != "desk" {
					t.Fatalf("gaps %v, outage %v, device %s, opened %q", st.Gaps, st.Outage, st.Device, x.opened)
				}
				// It is reopened once a second, and its first 100 ms show that it works.
				if g := st.Gaps[0]; g.Start-c.gap.Start < -0.2 || g.Start-c.gap.Start > 0.15 || g.End < c.gap.End-0.05 || g.End > c.gap.End+1.35 {
					t.Errorf("the gap is %v, want about %v", g, c.gap)
				}
				x.check(t, (20*time.Second + c.sleep).Seconds())
				x.end()
				<-x.done
				if err := x.Err(); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		})
	}
}

// TestOutageTakesTheDefault: after 5 s the default device takes the place of one
// that does not come back, and Stats names it. When that delivers audio again, it is used again.
func TestOutageTakesTheDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := speaking(0, 0)
		x := startOutage(t, "headset", comesBack(desk))
		wait(7900 * time.Millisecond)
		if st := x.Stats(); st.Outage == nil || st.Device != "headset" {
			t.Errorf("after 4.9 s of outage: %+v", st)
		}
		wait(12 * time.Second)
		if st := x.Stats(); st.Outage != nil || st.Device != "desk" || st.StandsIn != "headset" || len(st.Gaps) != 1 {
			t.Errorf("%+v", st)
		}
		wait(12 * time.Second)
		if st := x.Stats(); st.Outage != nil || st.Device != "headset" || st.StandsIn != "" || desk.closed.Load() != 1 {
			t.Errorf("%+v, the desk was closed %d times", st, desk.closed.Load())
		}
		x.check(t, 31.9)
		x.end()
		<-x.done
	})
}

// TestOutageEnds after two minutes, with the reason, and at once when the user
// ends the session. A device that never delivered anything has no outage.
func TestOutageEnds(t *testing.T) {
	for _, user := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			x := startOutage(t, "desk", unplugged)
			wait(60 * time.Second)
			if user {
				x.end()
			} else {
				wait(62 * time.Second)
				if x.Stats().Outage == nil {
					t.Error("the outage is over after 119 s")
				}
				wait(2 * time.Second)
			}
			synctest.Wait()
			select {
			case <-x.done:
			default:
				t.Fatal("the stream has not ended")
			}
			x.end()
			if x.Stats().Outage == nil {
				t.Error("the outage is over, and no device was reopened")
			}
			err := x.Err()
			if user {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), `"desk"`) || !strings.Contains(err.Error(), "did not come back within 2 minutes") || hint.Of(err) == "" {
				t.Error(err)
			}
			x.check(t, 123)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		x := startOutage(t, "desk", func(string) device.Stream { return speaking(1, 0) })
		<-x.done
		x.end()
		if x.Err() == nil || len(x.opened) != 1 {
			t.Errorf("%v after opening %d times", x.Err(), len(x.opened))
		}
	})
}

// TestReaderThatIsLate: audio that a device could not deliver, because its reader was late for longer than the queue, is a
// gap. The clock is that of the wall.
func TestReaderThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := openWith(t, "desk", Mic, bubbleTime, opener(func(string) device.Stream { return speaking(0, 0) }))
		r := NewChunkReader(t.Context(), src, Realtime)
		for c := range r.Chunks() {
			if c.Seq == 30 {
				time.Sleep(20 * time.Second)
			}
			if bubbleTime() > 40*time.Second {
				break
			}
		}
		s := r.Stats()
		if late := bubbleTime() - s.Position; late < -200*time.Millisecond || late > 500*time.Millisecond || len(s.Gaps) != 1 {
			t.Errorf("the audio is %v late, gaps %v", late, s.Gaps)
		}
	})
}

// TestOutageOfSpeakers: what the machine plays stays that when it is opened again. Its silence is no muted microphone.
func TestOutageOfSpeakers(t *testing.T) {
	m := openFake(t, speaking(0, 0), time.Minute)
	m.kind = Speakers
	m.release(t.Context())
	next := testkit.Must(m.openAgain(t.Context(), m.device.Key()))(t)
	defer next.Close()
	testkit.Equal(t, next.Info().Kind, Speakers, "the kind")
}

// TestSilence: a muted device, or one whose sound was never above the noise floor,
// is reported after 8 s; people who do not speak are not.
func TestSilence(t *testing.T) {
	loud, noise := Level{RMS: 0.05, Peak: 0.1}, Level{RMS: 0.0003, Peak: 0.001}
	for _, c := range []struct {
		name   string
		before Level
		then   Level
		want   Silence
	}{
		{"muted from the start", Level{}, Level{}, Muted},
		{"muted later", loud, Level{}, Muted},
		{"nothing above the noise floor", noise, noise, Quiet},
		{"people who pause", loud, noise, NotSilent},
		{"people who speak", noise, loud, NotSilent},
	} {
		var s silenceDetector
		s.add(c.before)
		got := NotSilent
		for i := range silenceAfter {
			s.add(c.then)
			got = s.state()
			if got != NotSilent && i < silenceAfter-2 {
				t.Errorf("%s: %v after %d chunks", c.name, got, i+2)
			}
		}
		testkit.Equal(t, got, c.want, c.name)
		s.add(loud)
		if got = s.state(); got != NotSilent {
			t.Errorf("%s: %v after a sound", c.name, got)
		}
	}
}
