package capture

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/capture/device"
)

// reopener is the device of a ChunkReader, or one of two. While it delivers nothing, it is opened again (lose), and Read
// returns silence. The ChunkReader continues with the device that takes its place (replace).
type reopener struct {
	*microphone
	wanted device.Device // it, or the one that it stands in for
	lost   error         // why the device delivers nothing; nil = it delivers
	before int64         // overflows of devices that were replaced

	samples int64       // so far, with those of silence
	clock   deviceClock // for a pair; empty while the device is lost
	other   *reopener   // of a pair; nil = there is none

	// While it is lost, or another one stands in for it, a goroutine tries to reopen it.
	found    chan *microphone   // receives the device that takes its place, and the device itself after a stand-in
	cancel   context.CancelFunc // nil = there are no attempts
	attempts sync.WaitGroup
	name     atomic.Value // of the device, for the attempts to reopen the other one of a pair
}

func newReopener(m *microphone) *reopener {
	d := &reopener{microphone: m, wanted: m.device}
	d.name.Store(m.device.Name)
	return d
}

// standsIn names the device for which another one stands in; "" = none.
func (d *reopener) standsIn() string {
	if d.isWanted(d.microphone) {
		return ""
	}
	return d.wanted.Name
}

func (d *reopener) isWanted(m *microphone) bool { return m.device.Key() == d.wanted.Key() }

// Read reads the device. Once that is lost, it returns silence, as much as is asked for. A device that has delivered
// nothing yet is not reopened.
func (d *reopener) Read(ctx context.Context, dst []float32) (int, error) {
	if d.lost == nil {
		err := d.receive(ctx)
		switch {
		case err == nil:
			n := d.take(dst)
			d.samples += int64(n)
			unread, at := d.arrival()
			d.clock.add(d.samples+unread, at)
			return n, nil
		case d.samples == 0 || ctx.Err() != nil:
			return 0, err
		}
		d.lose(err)
	}
	clear(dst)
	d.samples += int64(len(dst))
	return len(dst), nil
}

// lose begins to reopen the device, which delivers nothing for a reason. It ends the attempts before.
func (d *reopener) lose(reason error) {
	d.stopReopening()
	d.lost, d.clock = reason, deviceClock{}
	var ctx context.Context
	ctx, d.cancel = context.WithCancel(context.Background())
	d.found = make(chan *microphone, 1)
	lost := d.microphone
	d.attempts.Go(func() { d.reopen(ctx, lost, reason) })
}

// stopReopening ends the attempts. It closes a device that was found and not received.
func (d *reopener) stopReopening() {
	if d.cancel == nil {
		return
	}
	d.cancel()
	d.attempts.Wait()
	select {
	case m := <-d.found:
		_ = m.Close()
	default:
	}
	d.cancel = nil
}

// reopen tries to open the wanted device, or else the one that was lost, or after a time the
// default one, until ctx ends or the wanted one delivers audio, also while another one stands
// in for it.
func (d *reopener) reopen(ctx context.Context, lost *microphone, reason error) {
	defer func() { _ = recover() }() // of the native library: the outage lasts
	begun, standsIn := time.Now(), false
	for ctx.Err() == nil {
		keys, pause := []string{d.wanted.Key()}, defaultAfter
		if !standsIn {
			keys, pause = append(keys, lost.device.Key()), reopenInterval
			if time.Since(begun) >= defaultAfter {
				keys = append(keys, "")
			}
			lost.release(ctx)
			if hadMicrophone := errors.Is(reason, device.ErrPlaysOnly) || lost.source() != ""; hadMicrophone && device.PlaysOnly(ctx) {
				keys = nil // the device is what the machine plays
			}
		}
		if next := d.openFirst(ctx, lost, slices.Compact(keys)); next != nil {
			select {
			case d.found <- next:
			case <-ctx.Done():
				_ = next.Close()
			}
			if standsIn = !d.isWanted(next); !standsIn {
				return
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// openFirst opens the first of several devices that it can, nil = none. The other one of a pair does not
// stand in: that would be both.
func (d *reopener) openFirst(ctx context.Context, lost *microphone, keys []string) *microphone {
	for _, key := range keys {
		if ctx.Err() != nil { // the reader may be in the driver still
			break
		}
		next, err := lost.openAgain(ctx, key)
		switch {
		case err != nil:
		case !d.isWanted(next) && d.other != nil && next.device.Name == d.other.name.Load():
			_ = next.Close()
		default:
			return next
		}
	}
	return nil
}

// replace continues with a device that was found or chosen.
func (d *reopener) replace(m *microphone) {
	d.before += d.microphone.overflows()
	d.microphone, d.lost, d.clock = m, nil, deviceClock{}
	d.name.Store(m.device.Name)
}

func (d *reopener) overflows() int64 { return d.before + d.microphone.overflows() }

func (d *reopener) Close() error {
	d.stopReopening()
	return d.microphone.Close()
}
