package capture

import (
	"context"
	"errors"
)

// A ChunkReader can continue with another device, which the user chose. The device in
// use delivers until the other one has delivered its first audio.

// exchange is a device that takes the place of the reader's.
type exchange struct {
	next *microphone
	old  chan *microphone // receives the device before it, which Switch closes
}

var errOver = errors.New("the input has ended")

// Switchable reports whether Switch is possible: the source is one device.
func (r *ChunkReader) Switchable() bool { return r.opened != nil }

// Switch continues with the device of an input, which must have the
// same number of tracks. It waits until the device delivers audio. After an error
// the reader continues with the device that it has.
func (r *ChunkReader) Switch(ctx context.Context, input string) error {
	if !r.Switchable() || !IsDevice(input) {
		return fail("Start again with --input "+input+".", "only a microphone can be exchanged for another one")
	}
	next, err := r.opened.openOther(ctx, func() (*microphone, error) { return r.open(ctx, input, r.opened.selected) })
	if err != nil {
		return err
	}
	old := make(chan *microphone, 1)
	select {
	case r.exchanges <- exchange{next, old}:
		return (<-old).Close()
	case <-r.over:
		err = errOver
	case <-ctx.Done():
		err = ctx.Err()
	}
	return errors.Join(err, next.Close())
}

// exchangeDevice continues with a device that the user has chosen, or with one that is back: in place of its stand-in, or
// of the silence of one of a pair.
func (r *ChunkReader) exchangeDevice() (err error) {
	if r.seq == 0 {
		return nil
	}
	for _, d := range r.devices {
		select {
		case x := <-r.exchanges:
			return r.accept(x)
		case found := <-d.found:
			before := d.microphone
			if r.Switchable() {
				err = r.replace(found)
			} else { // the other device goes on
				d.replace(found)
			}
			_ = before.Close()
		default:
		}
	}
	return err
}

// accept continues with a chosen device. Only then may Switch close the one before.
func (r *ChunkReader) accept(x exchange) error {
	d := r.devices[0]
	d.stopReopening()
	old := d.microphone
	err := r.replace(x.next)
	x.old <- old
	return err
}

// replace continues with another device; see resume. What that has delivered until now
// is of the time that the one before covered.
func (r *ChunkReader) replace(next *microphone) error {
	next.discard()
	return r.resume(r.devices[0], next)
}
