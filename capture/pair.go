package capture

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"hubbub/capture/signal"
	"hubbub/protocol/hint"
)

// A pair is two devices as two tracks, such as the microphone and what the machine
// plays. Each device has a clock of its own. The second track is resampled so that
// its samples are those of the same moment as the first track's.
//
// When a block arrives is known, but it may arrive late: of a busy machine, or of a
// sound server that collects blocks. It is never early. So the earliest of recent
// arrivals, against the number of samples until then, are the clock of a device.

const (
	// arrivals is how many blocks the clock of a device is estimated from: 10 s.
	arrivals = 100
	// maxSlew is the largest change of the offset between the tracks, in samples for
	// each sample: 1000 ppm. Clocks differ by less than 200 ppm.
	maxSlew = 0.001
	// maxOffset is the largest error of the offset, in samples, that is corrected by
	// resampling; a larger one is a device that was reopened or lost audio.
	maxOffset = SampleRate / 20
)

// pair is a Source with two tracks.
type pair struct {
	first, second *reopener
	track         *signal.Interpolator
	echo          *signal.EchoSuppressor
	offset        float64 // of the second track's samples against the first's
	buf, in       []float32
}

// deviceClock estimates when sample 0 of a device was captured, up to a constant.
type deviceClock struct {
	recent [arrivals]float64 // arrival minus length of the audio until then, in samples
	n      int
	seen   int64
}

// add takes an arrival.
func (c *deviceClock) add(samples int64, at time.Duration) {
	if samples == c.seen {
		return
	}
	c.seen = samples
	c.recent[c.n%arrivals] = at.Seconds()*SampleRate - float64(samples)
	c.n++
}

// start is the time of sample 0, in samples.
func (c *deviceClock) start() float64 {
	return slices.Min(c.recent[:min(c.n, arrivals)])
}

// openPair opens two devices.
func openPair(ctx context.Context, first, second string) (Source, error) {
	if !IsDevice(first) || !IsDevice(second) {
		return nil, hint.Errorf("Give two devices, such as --input mic --input speakers.", "two inputs must be devices")
	}
	a, err := openDevice(ctx, first, Mix)
	if err != nil {
		return nil, err
	}
	b, err := openDevice(ctx, second, Mix)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return newPair(a, b), nil
}

func newPair(first, second *microphone) *pair {
	a, b := newReopener(first), newReopener(second)
	a.other, b.other = b, a
	return &pair{first: a, second: b, track: signal.NewInterpolator(), echo: signal.NewEchoSuppressor(), in: make([]float32, ChunkSamples)}
}

func (p *pair) Info() Info {
	i, second := p.first.Info(), p.second.Info()
	i.Name += " + " + second.Name
	i.Channels, i.Tracks = i.Channels+second.Channels, 2
	return i
}

// Read reads the first device, and as much of the second as belongs to it.
func (p *pair) Read(ctx context.Context, dst []float32) (int, error) {
	p.buf = append(p.buf[:0], make([]float32, len(dst)/2)...)
	begin := p.first.samples
	n := 0
	for n < len(p.buf) { // the echo is suppressed in whole frames
		k, err := p.first.Read(ctx, p.buf[n:])
		if err != nil {
			return 0, err
		}
		n += k
	}
	if p.second.samples == 0 {
		if err := p.readSecond(ctx); err != nil {
			return 0, err
		}
	}
	before := p.offset
	p.follow(n)
	if float64(p.first.samples)+p.offset <= 0 { // before the second device began
		return p.Read(ctx, dst)
	}
	step := (p.offset - before) / float64(n)
	if math.Abs(p.offset-before) > maxOffset { // a jump
		before, step = p.offset, 0
	}
	for need := float64(p.first.samples) + max(before, p.offset); p.track.End() <= need; {
		if err := p.readSecond(ctx); err != nil {
			return 0, err
		}
	}
	for i := range n {
		at := float64(begin+int64(i)) + before + step*float64(i)
		dst[2*i], dst[2*i+1] = p.buf[i], p.track.At(at)
	}
	p.track.Forget(float64(p.first.samples) + p.offset - maxOffset) // the offset may slew back
	p.echo.Suppress(dst[:2*n])
	return 2 * n, nil
}

func (p *pair) readSecond(ctx context.Context) error {
	n, err := p.second.Read(ctx, p.in)
	if err != nil {
		return err
	}
	p.track.Push(p.in[:n])
	return nil
}

// follow moves the offset towards that of the clocks, over n samples.
func (p *pair) follow(n int) {
	if p.first.clock.n == 0 || p.second.clock.n == 0 { // one of them is silence
		return
	}
	want := p.first.clock.start() - p.second.clock.start()
	d, most := want-p.offset, maxSlew*float64(n)
	if math.Abs(d) > maxOffset {
		p.offset = want
		return
	}
	p.offset += max(-most, min(most, d))
}

func (p *pair) Close() error { return errors.Join(p.first.Close(), p.second.Close()) }

func (p *pair) Notices() []string { return append(p.first.Notices(), p.second.Notices()...) }
