package capture

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
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

// fakeDevice is a native stream for tests.
type fakeDevice struct {
	name           string // "" = that by which it is opened
	rate, channels int
	tone           []float32 // one channel; nil = silence
	frames         []float32 // interleaved, instead of tone
	pos            int
	reads          int
	failAt         int           // the read that fails
	stallAt        int           // the read that never returns until release
	release        chan struct{} // closed: stalled reads return
	period         time.Duration
	demand         chan struct{} // not nil: each read waits for one
	lostAt         int
	closed         atomic.Int32
}

func (d *fakeDevice) Device() device.Device {
	return device.Device{Name: cmp.Or(d.name, "fake"), Number: 3}
}
func (d *fakeDevice) Format() (int, int) { return d.rate, d.channels }
func (d *fakeDevice) Source() string     { return "" }
func (d *fakeDevice) Close() error       { d.closed.Add(1); return nil }

func (d *fakeDevice) Read() ([]float32, bool, error) {
	d.reads++
	if d.stallAt > 0 && d.reads >= d.stallAt {
		<-d.release
		return nil, false, errors.New("gone")
	}
	if d.failAt > 0 && d.reads >= d.failAt {
		return nil, false, errors.New("device unavailable")
	}
	if d.demand != nil {
		if _, ok := <-d.demand; !ok {
			return nil, false, errors.New("gone")
		}
	}
	time.Sleep(d.period)
	n := device.BlockLength(d.rate)
	b := make([]float32, n*d.channels)
	for i := range n {
		for c := range d.channels {
			if j := (d.pos+i)*d.channels + c; j < len(d.frames) {
				b[i*d.channels+c] = d.frames[j]
			}
			if d.pos+i < len(d.tone) {
				b[i*d.channels+c] = d.tone[d.pos+i]
			}
		}
	}
	d.pos += n
	return b, d.reads == d.lostAt, nil
}

func openFake(t testing.TB, d *fakeDevice, stall time.Duration) *microphone {
	t.Helper()
	src := testkit.Must(openMicWith(context.Background(), "", micConfig{Mic, is(d), Mix, stall, elapsed}))(t)
	src.timeout = max(stall, 10*time.Second) // for a busy machine
	return src
}

// opener opens what find returns for the wanted name; nil = there is no such device.
func opener(find func(want string) device.Stream) device.Opener {
	return func(_ context.Context, want string, _ bool) (device.Stream, error) {
		found := find(want)
		if found == nil {
			return nil, errors.New("no such device")
		}
		if d, ok := found.(*fakeDevice); ok {
			d.name = cmp.Or(d.name, want)
		}
		return found, nil
	}
}

// is opens one device, whatever is wanted.
func is(d device.Stream) device.Opener { return opener(func(string) device.Stream { return d }) }

// openWith opens a microphone on a clock.
func openWith(t testing.TB, want string, kind Kind, now func() time.Duration, open device.Opener) *microphone {
	t.Helper()
	return testkit.Must(openMicWith(t.Context(), want, micConfig{kind: kind, stall: stallAfter, now: now, open: open}))(t)
}

// bubbleTime is the clock of a synctest bubble: how long it is there.
func bubbleTime() time.Duration { return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) }

// TestMicIsConverted: 44.1 kHz stereo is converted to 16 kHz mono; overflows of
// the device are counted.
func TestMicIsConverted(t *testing.T) {
	d := &fakeDevice{rate: 44100, channels: 2, tone: capturetest.Tone(44100, 1000, 44100), demand: make(chan struct{}, 50), lostAt: 2}
	src := openFake(t, d, time.Minute)
	if i := src.Info(); i.Kind != Mic || i.Name != "fake" || i.Rate != 44100 || i.Channels != 2 || i.Base != "live" {
		t.Errorf("%+v", i)
	}
	x := make([]float32, 0, 15000)
	buf := make([]float32, 1600)
	for len(x) < 15000 {
		d.demand <- struct{}{}
		d.demand <- struct{}{}
		n := testkit.Must(src.Read(context.Background(), buf))(t)
		x = append(x, buf[:n]...)
	}
	at, rest := capturetest.Power(x[1000:14000], SampleRate, 1000)
	if math.Abs(capturetest.DB(at/0.125)) > 0.5 || capturetest.DB(rest/0.125) > -60 {
		t.Errorf("the tone has %.2f dB, the rest has %.1f dB", capturetest.DB(at/0.125), capturetest.DB(rest/0.125))
	}
	testkit.Equal(t, src.overflows(), 1, "overflows")
	close(d.demand)
	if err := src.Close(); err != nil || d.closed.Load() != 1 {
		t.Errorf("%v, closed %d times", err, d.closed.Load())
	}
}

// TestMicThatFails and TestMicThatStalls: the audio before the failure is
// delivered, and the error names the device and has a hint.
func TestMicThatFails(t *testing.T) {
	d := &fakeDevice{rate: SampleRate, channels: 1, failAt: 4, period: time.Millisecond}
	src := openFake(t, d, time.Minute)
	x, err := drain(src, ChunkSamples)
	if len(x) != 3*ChunkSamples || err == nil || !strings.Contains(err.Error(), "fake") || !strings.Contains(err.Error(), "unavailable") || hint.Of(err) == "" {
		t.Errorf("%d samples, then %v", len(x), err)
	}
	if err := src.Close(); err != nil || d.closed.Load() != 1 {
		t.Errorf("closed %d times", d.closed.Load())
	}
}

func TestMicThatStalls(t *testing.T) {
	d := &fakeDevice{rate: SampleRate, channels: 1, stallAt: 4, release: make(chan struct{}), period: time.Millisecond}
	src := openFake(t, d, 200*time.Millisecond)
	x, err := drain(src, ChunkSamples)
	if len(x) != 3*ChunkSamples || err == nil || !strings.Contains(err.Error(), "stopped delivering audio") || hint.Of(err) == "" {
		t.Errorf("%d samples, then %v", len(x), err)
	}
	_, _ = src.Close(), src.Close() // as every attempt to reopen it does
	testkit.Equal(t, d.closed.Load(), 0, "a device was closed while it was being read")
	if notices := src.Notices(); len(notices) != 1 || !strings.Contains(notices[0], "did not respond") {
		t.Errorf("notices %q", notices)
	}
	// The read returns: the owner must close the device and end.
	close(d.release)
	<-src.ended
	if d.closed.Load() != 1 {
		t.Errorf("closed %d times", d.closed.Load())
	}
}

// TestMicThatHasNotStarted: an interrupt does not wait for the first block, and there is nothing to report.
func TestMicThatHasNotStarted(t *testing.T) {
	d := &fakeDevice{rate: SampleRate, channels: 1, stallAt: 1, release: make(chan struct{})}
	src := openFake(t, d, time.Minute)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := src.Read(ctx, make([]float32, ChunkSamples)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	begun := time.Now()
	_, _ = src.Close(), src.Close() // of the reader, and of the program
	if took := time.Since(begun); took >= closeWait {
		t.Errorf("closing took %v", took)
	}
	if notices := src.Notices(); len(notices) != 0 {
		t.Errorf("notices %q", notices)
	}
	close(d.release)
	<-src.ended
}

// TestMicWaitsForItsReader: a device is not read while its reader is micQueue behind. All that was read is delivered, in order.
func TestMicWaitsForItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const blocks = 2 * micQueue
		d := &fakeDevice{rate: SampleRate, channels: 1, tone: noisy(blocks * ChunkSamples), failAt: blocks + 1, demand: make(chan struct{}, blocks)}
		src := openWith(t, "", Mic, elapsed, is(d))
		d.demand <- struct{}{}
		first := make([]float32, ChunkSamples)
		testkit.Must(src.Read(t.Context(), first))(t)
		for range blocks - 1 {
			d.demand <- struct{}{}
		}
		synctest.Wait()
		testkit.Equal(t, d.reads, micQueue+2, "blocks were read")
		x, err := drain(src, ChunkSamples)
		if x = append(first, x...); !slices.Equal(x, d.tone) || src.overflows() != 0 {
			t.Errorf("%d samples of %d, %d overflows, then %v", len(x), len(d.tone), src.overflows(), err)
		}
		_ = src.Close()
	})
}

// TestMicBeforeTheSession: what a device delivers while a session connects for long is no outage. The session begins with the
// newest 5 s.
func TestMicBeforeTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const before = 3 * micQueue
		d := &fakeDevice{rate: SampleRate, channels: 1, tone: noisy((before + 20) * ChunkSamples), period: ChunkDuration, failAt: before + 21}
		src := openWith(t, "", Mic, bubbleTime, is(d))
		time.Sleep(before*ChunkDuration + ChunkDuration/2)
		x, err := drain(src, ChunkSamples)
		if !slices.Equal(x, d.tone[(before-micQueue)*ChunkSamples:]) || !strings.Contains(err.Error(), "unavailable") {
			t.Errorf("%d samples, then %v", len(x), err)
		}
		_ = src.Close()
	})
}

// TestMicOfAProgramThatWasStopped: what a device has queued meanwhile is no audio that it lost.
func TestMicOfAProgramThatWasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stopped atomic.Int64
		d := &fakeDevice{rate: SampleRate, channels: 1, demand: make(chan struct{}, 4*micQueue)}
		now := func() time.Duration { return time.Hour + time.Duration(stopped.Load()) }
		src := openWith(t, "", Mic, now, is(d))
		d.demand <- struct{}{}
		testkit.Must(src.Read(t.Context(), make([]float32, ChunkSamples)))(t)
		stopped.Store(int64(20 * time.Second))
		for range cap(d.demand) {
			d.demand <- struct{}{}
		}
		synctest.Wait()
		if _, err := src.Read(t.Context(), make([]float32, ChunkSamples)); err == nil {
			t.Error("the pause is not noticed")
		}
		testkit.Equal(t, src.overflows(), 0, "overflows")
		close(d.demand)
		_ = src.Close()
	})
}

func TestStallIsReportedWithinTwoSeconds(t *testing.T) {
	// The last block came up to 100 ms before the device went away.
	if worst := stallAfter + stalledCloseWait + ChunkDuration; worst > 2*time.Second {
		t.Fatalf("a stall is reported after %v", worst)
	}
}

func TestMicThatDoesNotOpen(t *testing.T) {
	hang := make(chan struct{})
	d := &fakeDevice{rate: SampleRate, channels: 1, period: time.Millisecond}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	_, err := openMicWith(ctx, "", micConfig{Mic, opener(func(string) device.Stream { <-hang; return d }), Mix, time.Second, elapsed})
	if err == nil {
		t.Fatal("it opens")
	}
	close(hang) // now it opens, after the caller has given up
	testkit.Eventually(t, "the close of a device that opened too late", func() bool { return d.closed.Load() > 0 })
	_, err = openMicWith(context.Background(), "", micConfig{Mic, opener(func(string) device.Stream { panic("library") }), Mix, time.Second, elapsed})
	if err == nil || !strings.Contains(err.Error(), "library") {
		t.Error(err)
	}
}

func TestDemoWithoutMicrophone(t *testing.T) {
	none := func(context.Context, string, Channels) (*microphone, error) {
		return nil, hint.Errorf("", "%w on this machine", device.ErrNone)
	}
	src := testkit.Must(openDefault(context.Background(), Mix, none))(t)
	defer src.Close()
	if i := src.Info(); i.Kind != Demo || !strings.Contains(i.Notice, "no capture device") {
		t.Errorf("%+v", i)
	}
	busy := errors.New("busy")
	if _, err := openDefault(context.Background(), Mix, func(context.Context, string, Channels) (*microphone, error) { return nil, busy }); !errors.Is(err, busy) {
		t.Errorf("a busy microphone is replaced by the demo: %v", err)
	}
}
