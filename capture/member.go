package capture

import (
	"context"
	"errors"
	"io"
	"sync"
)

// member is a device of a pair. While it delivers nothing, it is reopened, and its track
// is silence, as much as the audio of the other device asks for. The other one's
// track goes on, unless it fails as well.
type member struct {
	other   *member
	clock   deviceClock // empty while the device is lost
	samples int64       // so far, with those of silence
	lost    error       // why the device delivers nothing; nil = it delivers
	again   reopening   // while it is lost, or another one stands in for it

	mu     sync.Mutex // guards what follows, which the reader changes, and reopen of the pair
	device timedSource
	before int64 // overflows of devices that were replaced
}

// read returns an error if the other device is lost, too, or this one has never
// delivered anything.
func (m *member) read(ctx context.Context, dst []float32) (int, error) {
	select {
	case src := <-m.again.found:
		old := m.device
		m.replace(src)
		m.clock = deviceClock{}
		_ = old.Close()
	default:
	}
	n := len(dst)
	if m.lost == nil {
		var err error
		n, err = m.device.Read(ctx, dst)
		switch {
		case err == nil:
			m.samples += int64(n)
			unread, at := m.device.arrival()
			m.clock.add(m.samples+unread, at)
			return n, nil
		case m.samples == 0 || ctx.Err() != nil || errors.Is(err, io.EOF):
			return 0, err
		}
		m.lose(err)
		n = len(dst)
	}
	if m.other.lost != nil {
		return 0, m.lost
	}
	clear(dst)
	m.samples += int64(n)
	return n, nil
}

// lose begins to reopen the device.
func (m *member) lose(reason error) {
	m.lost, m.clock = reason, deviceClock{}
	m.again.start(context.Background(), m.reopen)
}

// reopen reopens the device, or takes another one in its place, but not the one of the other
// track: that would be both.
func (m *member) reopen(ctx context.Context, orDefault bool) (Source, error) {
	src, err := m.device.reopen(ctx, orDefault)
	if err != nil {
		return nil, err
	}
	if d, ok := src.(deviceSource); ok && d.standsIn() != "" && src.Info().Name == m.other.current().Info().Name {
		return nil, errors.Join(m.lost, src.Close())
	}
	return src, nil
}

// replace continues with a device that was found.
func (m *member) replace(src Source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before += m.device.overflows()
	m.device, m.lost = src.(timedSource), nil
}

func (m *member) close() error {
	m.again.stop()
	return m.device.Close()
}

// current is the device now; any goroutine may ask.
func (m *member) current() timedSource {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.device
}

func (m *member) overflows() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.before + m.device.overflows()
}
