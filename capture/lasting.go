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

// lasting is a Source of a device that is reopened while it delivers nothing (lose). The reader, or the pair that it is
// of, fills the time. The reader continues with the device that takes its place (replace).
type lasting struct {
	*microphone
	wanted device.Device // it, or the one that it stands in for
	lost   error         // why the device delivers nothing; nil = it delivers
	before int64         // overflows of devices that were replaced

	// Of a pair.
	other   *lasting    // nil = there is none
	clock   deviceClock // empty while the device is lost
	samples int64       // so far, with those of silence

	// While it is lost, or another one stands in for it, a goroutine tries to reopen it.
	found    chan *microphone   // receives the device that takes its place, and the device itself after a stand-in
	cancel   context.CancelFunc // nil = there are no attempts
	attempts sync.WaitGroup
	name     atomic.Value // of the device, for the attempts to reopen the other one of a pair
}

func newLasting(m *microphone) *lasting {
	l := &lasting{microphone: m, wanted: m.device}
	l.name.Store(m.device.Name)
	return l
}

// standsIn names the device for which another one stands in; "" = none.
func (l *lasting) standsIn() string {
	if l.isWanted(l.microphone) {
		return ""
	}
	return l.wanted.Name
}

func (l *lasting) isWanted(m *microphone) bool { return m.device.Key() == l.wanted.Key() }

// lose begins to reopen the device, which delivers nothing for a reason. It ends the attempts before.
func (l *lasting) lose(reason error) {
	l.stopReopening()
	l.lost, l.clock = reason, deviceClock{}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	l.found = make(chan *microphone, 1)
	lost := l.microphone
	l.attempts.Go(func() { l.reopen(ctx, lost, reason) })
}

// stopReopening ends the attempts. It closes a device that was found and not received.
func (l *lasting) stopReopening() {
	if l.cancel == nil {
		return
	}
	l.cancel()
	l.attempts.Wait()
	select {
	case m := <-l.found:
		_ = m.Close()
	default:
	}
	l.cancel = nil
}

// reopen tries to open the wanted device, or else the one that was lost, or after a time the
// default one, until ctx ends or the wanted one delivers audio, also while another one stands
// in for it.
func (l *lasting) reopen(ctx context.Context, lost *microphone, reason error) {
	defer func() { _ = recover() }() // of the native library: the outage lasts
	begun, standsIn := time.Now(), false
	for ctx.Err() == nil {
		keys, pause := []string{l.wanted.Key()}, defaultAfter
		if !standsIn {
			keys, pause = append(keys, lost.device.Key()), reopenInterval
			if time.Since(begun) >= defaultAfter {
				keys = append(keys, "")
			}
			lost.release(ctx)
			if errors.Is(reason, device.ErrPlaysOnly) && device.PlaysOnly(ctx) { // the device is what the machine plays
				keys = nil
			}
		}
		if next := l.openFirst(ctx, lost, slices.Compact(keys)); next != nil {
			select {
			case l.found <- next:
			case <-ctx.Done():
				_ = next.Close()
			}
			if standsIn = !l.isWanted(next); !standsIn {
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
func (l *lasting) openFirst(ctx context.Context, lost *microphone, keys []string) *microphone {
	for _, key := range keys {
		if ctx.Err() != nil { // the reader may be in the driver still
			break
		}
		next, err := lost.openAgain(ctx, key)
		switch {
		case err != nil:
		case !l.isWanted(next) && l.other != nil && next.device.Name == l.other.name.Load():
			_ = next.Close()
		default:
			return next
		}
	}
	return nil
}

// replace continues with a device that was found, or that was chosen after stopReopening.
func (l *lasting) replace(m *microphone) {
	if l.cancel == nil {
		l.wanted = m.device
	}
	l.before += l.microphone.overflows()
	l.microphone, l.lost, l.clock = m, nil, deviceClock{}
	l.name.Store(m.device.Name)
}

func (l *lasting) overflows() int64 { return l.before + l.microphone.overflows() }

func (l *lasting) Close() error {
	l.stopReopening()
	return l.microphone.Close()
}
