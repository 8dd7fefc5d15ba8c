package capture

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// deviceSource is a source that reads a device: a *microphone. It may deliver only silence.
type deviceSource interface {
	Source
	// overflows counts the losses of audio.
	overflows() int64
	// silent names the device if it delivers only silence.
	silent() (device string, s Silence)
	// standsIn names the device that this one stands in for; "" = none.
	standsIn() (device string)
	// reopen opens the same device after an error of Read, or, if that fails and orDefault is
	// set, the default one. It returns a source that has delivered audio.
	reopen(ctx context.Context, orDefault bool) (deviceSource, error)
	// elapsed is its clock, arrival when the newest samples were read, and how many of them
	// Read has not returned yet.
	elapsed() time.Duration
	arrival() (unread int64, at time.Duration)
}

// lasting is a Source of a device that is reopened while it delivers nothing. The reader
// fills the time, and continues with the device that takes its place (replace). One of a pair
// fills the time itself, with as much silence as the audio of the other one asks for.
type lasting struct {
	device  deviceSource
	other   *lasting    // of a pair; nil = none
	clock   deviceClock // for a pair; empty while the device is lost
	samples int64       // so far, with those of silence
	lost    error       // why the device delivers nothing; nil = it delivers
	before  int64       // overflows of devices that were replaced

	// While it is lost, or another one stands in for it, a goroutine tries to reopen it.
	found  chan deviceSource // receives the device that takes its place, and the device itself after a stand-in
	cancel context.CancelFunc
	ended  sync.WaitGroup
	name   atomic.Value // of the device, for the attempts to reopen the other one of a pair
}

// Read returns an error if the device is lost, and the other one too or there is none.
func (l *lasting) Read(ctx context.Context, dst []float32) (int, error) {
	if l.lost == nil {
		n, err := l.device.Read(ctx, dst)
		switch {
		case err == nil:
			l.samples += int64(n)
			unread, at := l.device.arrival()
			l.clock.add(l.samples+unread, at)
			return n, nil
		case l.samples == 0 || ctx.Err() != nil || errors.Is(err, io.EOF):
			return 0, err
		}
		l.lost, l.clock = err, deviceClock{}
		l.start()
	}
	if l.other == nil || l.other.lost != nil {
		return 0, l.lost
	}
	clear(dst)
	l.samples += int64(len(dst))
	return len(dst), nil
}

// start begins to reopen the device. It ends the attempts before.
func (l *lasting) start() {
	l.stop()
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	l.found = make(chan deviceSource, 1)
	l.ended.Go(func() { l.attempts(ctx) })
}

// stop ends the attempts. It closes a device that was found and not received.
func (l *lasting) stop() {
	if l.cancel == nil {
		return
	}
	l.cancel()
	l.ended.Wait()
	select {
	case src := <-l.found:
		_ = src.Close()
	default:
	}
}

// attempts tries until the device delivers audio or ctx ends, also while another one stands in
// for it.
func (l *lasting) attempts(ctx context.Context) {
	defer func() { _ = recover() }() // of the native library: the outage lasts
	begun, pause := time.Now(), reopenInterval
	try := func() (deviceSource, error) { return l.reopen(ctx, time.Since(begun) >= defaultAfter) }
	for ctx.Err() == nil {
		src, err := try()
		if err == nil {
			select {
			case l.found <- src:
			case <-ctx.Done():
				_ = src.Close()
			}
			standIn, ok := src.(*microphone)
			if !ok || standIn.wanted == nil {
				return
			}
			pause, try = defaultAfter, func() (deviceSource, error) { return standIn.openAgain(ctx, standIn.wanted.Key()) }
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// reopen reopens the device, or takes another one in its place, but not the other one of a
// pair: that would be both.
func (l *lasting) reopen(ctx context.Context, orDefault bool) (deviceSource, error) {
	src, err := l.device.reopen(ctx, orDefault)
	if err == nil && l.other != nil && src.standsIn() != "" && src.Info().Name == l.other.name.Load() {
		return nil, errors.Join(l.lost, src.Close())
	}
	return src, err
}

// replace continues with a device that was found or chosen.
func (l *lasting) replace(src deviceSource) {
	l.before += l.device.overflows()
	l.device, l.lost, l.clock = src, nil, deviceClock{}
	l.name.Store(src.Info().Name)
}

func (l *lasting) Info() Info        { return l.device.Info() }
func (l *lasting) Notices() []string { return l.device.Notices() }
func (l *lasting) overflows() int64  { return l.before + l.device.overflows() }

func (l *lasting) Close() error {
	l.stop()
	return l.device.Close()
}
