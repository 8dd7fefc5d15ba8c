package capture

import (
	"context"
	"errors"
)

// A stream can continue with another device, which its user chose. The device in
// use delivers until the other one has delivered its first audio.

// exchange is a device that takes the place of the stream's.
type exchange struct {
	next *microphone
	old  chan Source // receives the stream's device, which the sender closes
}

var errOver = errors.New("the input has ended")

// Switchable reports whether Switch is possible: the source is one device.
func (s *ChunkReader) Switchable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.src.(*microphone)
	return ok
}

// Switch continues the stream with the device of an input, which must have the
// same number of tracks. It waits until the device delivers audio. After an error
// the stream continues with the device that it has.
func (s *ChunkReader) Switch(ctx context.Context, input string) error {
	s.mu.Lock()
	current, ok := s.src.(*microphone)
	s.mu.Unlock()
	if !ok || !IsDevice(input) {
		return fail("Start again with --input "+input+".", "only a microphone can be exchanged for another one")
	}
	next, err := current.openOther(ctx, func() (Source, error) {
		return s.open(ctx, Spec{Input: input, Channels: current.selected})
	})
	if err != nil {
		return err
	}
	old := make(chan Source, 1)
	select {
	case s.exchanges <- exchange{next, old}:
		return (<-old).Close()
	case <-s.over:
		err = errOver
	case <-ctx.Done():
		err = ctx.Err()
	}
	return errors.Join(err, next.Close())
}

// accept continues with a chosen device; see resume. What the device has delivered
// until now is of the time that the other one covered.
func (s *ChunkReader) accept(ctx context.Context, x exchange, from anchor, began int64, seq *int64) error {
	x.next.discard()
	old := s.src
	s.replaceSource(x.next)
	x.old <- old
	s.silence = silenceDetector{}
	return s.resume(ctx, from.due(x.next.elapsed()), began, seq)
}

// discard drops what was delivered and not read.
func (m *microphone) discard() {
	m.out, m.next = m.out[:0], 0
	for {
		select {
		case b := <-m.blocks:
			m.newest = b.at
		default:
			return
		}
	}
}
