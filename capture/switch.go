package capture

import (
	"context"
	"errors"

	"hubbub/protocol/hint"
)

// A ChunkReader can continue with another device, which the user chose, or which is back. The device in use delivers until
// the other one has delivered its first audio.

var errOver = errors.New("the input has ended")

// Switchable reports whether Switch is possible: the source is one device.
func (r *ChunkReader) Switchable() bool { return r.opened != nil }

// Switch continues with the device of an input, which must have the same number of tracks, and returns its name. It waits
// until the device delivers audio. After an error the reader continues with the device that it has.
func (r *ChunkReader) Switch(ctx context.Context, input string) (name string, err error) {
	if !r.Switchable() || !IsDevice(input) {
		return "", hint.Errorf("Start again with --input "+input+".", "only a microphone can be exchanged for another one")
	}
	next, err := r.opened.openOther(ctx, func() (*microphone, error) { return r.open(ctx, input, r.opened.selected) })
	if err != nil {
		return "", err
	}
	select {
	case r.chosen <- next:
		return next.info.Name, nil
	case <-r.over:
		err = errOver
	case <-ctx.Done():
		err = ctx.Err()
	}
	return "", errors.Join(err, next.Close())
}

// exchangeDevice continues with a device that the user has chosen, or with one that is back: in place of its stand-in, or
// of silence.
func (r *ChunkReader) exchangeDevice() error {
	if r.seq == 0 {
		return nil
	}
	for _, d := range r.devices {
		select {
		case m := <-r.chosen:
			return r.choose(m)
		case m := <-d.found:
			if err := r.replace(d, m); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

// choose continues with a device that the user has chosen.
func (r *ChunkReader) choose(m *microphone) error {
	d := r.devices[0]
	d.stopReopening()
	d.wanted = m.device
	return r.replace(d, m)
}

// replace continues with a device in the place of another one, and with silence from the next chunk up to its first one,
// which is a gap. What it has delivered until now is of the time before. Stats has the device and the end of the outage at
// once: the outage is not the new device's.
func (r *ChunkReader) replace(d *reopener, m *microphone) error {
	if d.lost == nil { // else it was closed, to be reopened
		defer d.microphone.Close()
	}
	m.discard()
	if d.other != nil && (d.lost == nil || d.other.lost == nil) { // one of them goes on
		d.replace(m)
		return nil
	}
	began := r.seq
	err := r.fill(r.next.due(m.now()))
	d.replace(m)
	r.drift = drift{}
	switch {
	case err != nil:
		return err
	case r.outage == nil:
		r.addGap(began, r.seq)
	}
	r.endOutage(r.seq)
	r.publish(r.stats.Position)
	return nil
}
