package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// stallAfter is how long a device may give nothing before it counts as stalled
// or unplugged. Reads bring 100 ms each.
const stallAfter = 1500 * time.Millisecond

// startAfter is the same for the first samples: wireless microphones wake up,
// and PulseAudio's monitors first finish a block of up to 2 s that they began
// for nobody.
const startAfter = 5 * time.Second

// micQueue bounds the blocks of 100 ms between the device's goroutine and the
// reader, which only measures and queues: 5 s.
const micQueue = 50

// closeWait is how long Close waits for a device that may be stuck, stuckWait
// for one that is known to be: the user should hear of it within 2 s.
const (
	closeWait = time.Second
	stuckWait = 200 * time.Millisecond
)

// nativeStream is one open, running device. Every method is called by the one
// goroutine that opened it.
type nativeStream interface {
	device() Device
	// format gives the rate in Hz and the channels it was opened at.
	format() (rate, channels int)
	// read blocks for 100 ms of interleaved samples, which are valid until the
	// next read. lost: audio before them was lost.
	read() (samples []float32, lost bool, err error)
	close() error
}

// nativeOpener opens a device by what the user called it.
type nativeOpener func(ctx context.Context, want string) (nativeStream, error)

// microphone is a Source on a device. The device belongs to one goroutine from
// open to close; Close only asks it to end.
//
// A device can be stuck in the native library for good: unplugged ones are, in
// some drivers. Stopping it from another goroutine would crash or hang as well,
// so then it is left alone: the reader gets an error within 2 s, Close returns
// all the same, and the stuck goroutine stays with its device until the
// library lets go of it, or the process ends.
type microphone struct {
	info   Info
	blocks chan []float32 // mono, at the device's rate
	ended  chan struct{}  // closed by the owner after err is set
	err    error
	stop   context.CancelFunc

	lost  atomic.Int64
	notes notes

	rs       *resampler
	out      []float32
	next     int
	patience time.Duration // of the next wait
	stall    time.Duration
	stalled  bool
	failure  error // kept: after an error the source is over
}

// openMic opens a microphone by name or number; "" = the default.
func openMic(ctx context.Context, want string) (Source, error) {
	return openMicWith(ctx, want, openNative, stallAfter)
}

func openMicWith(ctx context.Context, want string, open nativeOpener, stall time.Duration) (Source, error) {
	type opened struct {
		dev            Device
		rate, channels int
		err            error
	}
	life, stop := context.WithCancel(context.Background())
	m := &microphone{blocks: make(chan []float32, micQueue), ended: make(chan struct{}), stop: stop, patience: max(stall, startAfter), stall: stall}
	ready := make(chan opened, 1)
	go func() {
		defer close(m.ended)
		defer func() {
			if r := recover(); r != nil {
				m.err = fmt.Errorf("the audio library failed: %v", r)
				select {
				case ready <- opened{err: m.err}:
				default:
				}
			}
		}()
		s, err := open(life, want)
		if err != nil {
			ready <- opened{err: err}
			return
		}
		o := opened{dev: s.device()}
		o.rate, o.channels = s.format()
		ready <- o
		m.err = m.own(life, s, o.channels)
	}()
	ctx, cancel := context.WithTimeout(ctx, nativeTimeout)
	defer cancel()
	select {
	case <-ctx.Done():
		stop() // the owner closes what it may still open
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fail("Restart the sound server, or give --input FILE.", "the microphone does not open: the sound system does not answer")
		}
		return nil, ctx.Err()
	case o := <-ready:
		if o.err != nil {
			stop()
			return nil, o.err
		}
		m.info = Info{Kind: Mic, Name: o.dev.Name, Base: "live", Rate: o.rate, Channels: o.channels}
		m.rs = newResampler(o.rate, SampleRate)
		return m, nil
	}
}

// own is the device's life after it was opened.
func (m *microphone) own(ctx context.Context, s nativeStream, channels int) error {
	var failed error
	for ctx.Err() == nil {
		samples, lost, err := s.read()
		if lost {
			m.lost.Add(1)
		}
		if err != nil {
			failed = err
			break
		}
		mono := make([]float32, len(samples)/channels)
		for i := range mono {
			var sum float32
			for _, x := range samples[i*channels : (i+1)*channels] {
				if x >= -tooLoud && x <= tooLoud {
					sum += x
				}
			}
			mono[i] = sum / float32(channels)
		}
		select {
		case m.blocks <- mono:
		default:
			// The reader was away for 5 s. The newest audio is lost, as when
			// the device itself overflows.
			m.lost.Add(1)
		}
	}
	if err := s.close(); failed == nil && err != nil {
		m.notes.add("the microphone did not close properly: " + err.Error())
	}
	return failed
}

func (m *microphone) Info() Info        { return m.info }
func (m *microphone) overflows() int64  { return m.lost.Load() }
func (m *microphone) notices() []string { return m.notes.all() }

// Read waits for the device, at most stallAfter (startAfter for the first
// samples): then it has stalled, or is no longer there.
func (m *microphone) Read(ctx context.Context, dst []float32) (int, error) {
	if m.failure != nil {
		return 0, m.failure
	}
	for m.next == len(m.out) {
		m.out, m.next = m.out[:0], 0
		block, err := m.wait(ctx)
		if err != nil {
			m.failure = err
			return 0, err
		}
		m.patience = m.stall
		m.out = m.rs.push(block, m.out)
	}
	n := copy(dst, m.out[m.next:])
	m.next += n
	return n, nil
}

func (m *microphone) wait(ctx context.Context) ([]float32, error) {
	select {
	case b := <-m.blocks:
		return b, nil
	default:
	}
	watch := time.NewTimer(m.patience)
	defer watch.Stop()
	for {
		select {
		case b := <-m.blocks:
			return b, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-watch.C:
			m.stop()
			m.stalled = true
			return nil, fail("Plug it in again, then start again; what was recorded so far is kept.",
				"the microphone %q stopped giving audio: it was unplugged, or its driver stalled", m.info.Name)
		case <-m.ended:
			select {
			case b := <-m.blocks: // sent just before the end
				return b, nil
			default:
			}
			if m.err == nil {
				return nil, io.EOF
			}
			return nil, fail("Plug it in again, then start again; what was recorded so far is kept.",
				"the microphone %q failed: %w", m.info.Name, m.err)
		}
	}
}

// Close ends the device and waits for that, but not for ever.
func (m *microphone) Close() error {
	m.stop()
	wait := closeWait
	if m.stalled {
		wait = stuckWait
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-m.ended:
	case <-t.C:
		m.notes.add("the microphone is stuck and was left alone")
	}
	return nil
}

// openDefault opens the default microphone, or the demo on a machine that has
// none. A microphone that is there and does not open is an error.
func openDefault(ctx context.Context, mic func(context.Context, string) (Source, error)) (Source, error) {
	src, err := mic(ctx, "")
	if errors.Is(err, errNoDevice) {
		return openDemo(ctx, err.Error()+": this is the built-in demo conversation")
	}
	return src, err
}

// blockLength is how many samples of one channel 100 ms are.
func blockLength(rate int) int { return max(1, rate/10) }
