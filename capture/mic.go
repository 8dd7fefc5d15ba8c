package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/capture/device"
	"hubbub/protocol/hint"
)

// stallAfter is how long a device may deliver nothing before it counts as
// stalled or unplugged. Each read delivers 100 ms.
const stallAfter = 1500 * time.Millisecond

// startAfter is the same for the first samples: wireless microphones need time
// to start, and PulseAudio's monitors first complete a block of up to 2 s that
// began before the capture.
const startAfter = 5 * time.Second

// micQueue limits the blocks of 100 ms between the device's goroutine and the
// reader: 5 s. Beyond, the device waits for the reader, and overflows itself. Before
// the reader begins, as while a session connects, only the newest ones are kept.
const micQueue = 50

// closeWait is how long Close waits for a device, stalledCloseWait for one that
// has stalled or not delivered anything yet: the user should see the error, or the end
// of the program, within 2 s.
const (
	closeWait        = time.Second
	stalledCloseWait = 200 * time.Millisecond
)

// microphone is a Source that reads a device. One goroutine owns the device from
// open to close; Close cancels its context.
//
// A read in the native library can block forever: with some drivers it does so
// when the device is unplugged. Stopping the device from another goroutine would
// crash or block as well. So the device is not closed then: the reader gets an
// error within 2 s, Close returns, and the owner keeps the device until the read
// returns or the process ends.
type microphone struct {
	info   Info
	device device.Device
	source func() string // of the open device
	micConfig
	blocks chan block    // closed by the owner after err is set
	ended  chan struct{} // closed by the owner at its end
	err    error
	stop   context.CancelFunc

	losses     atomic.Int64 // of audio, by the device
	begun      atomic.Bool  // the reader has begun
	noticeList audiofile.Notices

	silence   silenceDetector
	converter *converter
	out       []float32
	next      int
	timeout   time.Duration // of the next wait
	closeWait time.Duration // of Close; 0 after one that was in vain
	newest    time.Duration // when the newest block was read
}

// micConfig is how a microphone is opened and read.
type micConfig struct {
	kind     Kind
	open     device.Opener
	selected Channels
	stall    time.Duration        // stallAfter
	now      func() time.Duration // elapsed
}

// block is 100 ms of a device.
type block struct {
	samples []float32     // interleaved, at the device's rate
	at      time.Duration // when it was read
}

// openMic opens a microphone by name or number; "" = the default. Where PortAudio finds no
// such device, a recorder may: it asks the sound server itself.
func openMic(ctx context.Context, want string, selected Channels) (*microphone, error) {
	if want == "" && device.HasPortAudio && device.PlaysOnly(ctx) {
		return nil, hint.Errorf("Connect a microphone (`hubbub devices` lists them), or use a file with --input FILE.",
			"%w on this machine: the sound server has only what the machine plays", device.ErrNone)
	}
	m, err := openMicWith(ctx, want, micConfig{Mic, device.Open, selected, stallAfter, elapsed})
	if (errors.Is(err, device.ErrNone) || errors.Is(err, device.ErrNoMatch)) && device.HasPortAudio {
		if other, otherErr := openMicWith(ctx, want, micConfig{Mic, device.OpenRecorder, selected, stallAfter, elapsed}); otherErr == nil || ctx.Err() != nil {
			return other, otherErr
		}
	}
	if errors.Is(err, device.ErrNoMatch) {
		err = hint.Add(err, device.Hint)
	}
	return m, err
}

func openMicWith(ctx context.Context, want string, config micConfig) (*microphone, error) {
	owner, stop := context.WithCancel(context.Background())
	m := &microphone{micConfig: config, blocks: make(chan block, micQueue), ended: make(chan struct{}), stop: stop,
		timeout: max(config.stall, startAfter), closeWait: stalledCloseWait}
	ready := make(chan struct{}, 1)
	go m.own(owner, want, ready)
	ctx, cancel := context.WithTimeout(ctx, device.Timeout)
	defer cancel()
	select {
	case <-ctx.Done():
		stop() // if the device opens later, the owner closes it
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, hint.Errorf("Restart the sound server, or give --input FILE.", "cannot open the microphone: the sound system does not respond")
		}
		return nil, ctx.Err()
	case _, opened := <-ready:
		if !opened {
			stop()
			return nil, m.err
		}
	}
	var err error
	if m.converter, err = newConverter(m.info.Rate, m.info.Channels, m.selected); err != nil {
		_ = m.Close()
		return nil, audiofile.Named(m.info.Name, err)
	}
	m.info.Tracks = len(m.converter.tracks)
	return m, nil
}

// own opens the device, says on ready that it is open, and reads it until ctx ends. ready is
// closed without that if the device does not open.
func (m *microphone) own(ctx context.Context, want string, ready chan<- struct{}) {
	defer close(m.ended)
	defer close(m.blocks)
	defer close(ready)
	defer func() {
		if r := recover(); r != nil {
			m.err = fmt.Errorf("the audio library failed: %v", r)
		}
	}()
	s, err := m.open(ctx, want, m.selected != Mix)
	if err != nil {
		m.err = err
		return
	}
	m.device, m.source = s.Device(), s.Source
	m.info = Info{Kind: m.kind, Name: m.device.Name, Base: "live"}
	m.info.Rate, m.info.Channels = s.Format()
	ready <- struct{}{}
	m.err = m.capture(ctx, s)
}

// capture reads the device until ctx ends or a read fails, then closes it.
func (m *microphone) capture(ctx context.Context, s device.Stream) error {
	var failed error
	for ctx.Err() == nil {
		samples, lost, err := s.Read()
		if lost {
			m.losses.Add(1)
		}
		if failed = err; err != nil {
			break
		}
		if !m.begun.Load() && len(m.blocks) == cap(m.blocks) {
			select {
			case <-m.blocks:
			default: // it has begun in this moment
			}
		}
		select {
		case m.blocks <- block{slices.Clone(samples), m.now()}:
		case <-ctx.Done():
		}
	}
	if err := s.Close(); failed == nil && err != nil {
		m.noticeList.Add("the microphone did not close properly: " + err.Error())
	}
	return failed
}

func (m *microphone) Info() Info {
	i := m.info
	i.Source = m.source()
	return i
}

func (m *microphone) overflows() int64  { return m.losses.Load() }
func (m *microphone) Notices() []string { return m.noticeList.All() }

// Read is that of a Source. A ChunkReader reads through a reopener.
func (m *microphone) Read(ctx context.Context, dst []float32) (int, error) {
	if err := m.receive(ctx); err != nil {
		return 0, err
	}
	return m.take(dst), nil
}

// take copies samples that were received.
func (m *microphone) take(dst []float32) int {
	n := copy(dst, m.out[m.next:])
	m.next += n
	return n
}

// receive waits for the device until there are samples to take, at most stallAfter (startAfter for the first
// ones). After that, the device has stalled or was removed.
func (m *microphone) receive(ctx context.Context) error {
	m.begun.Store(true)
	for m.next == len(m.out) {
		m.out, m.next = m.out[:0], 0
		b, err := m.wait(ctx)
		// After a pause, as of a program that was stopped, the device may have a
		// queue of any length.
		if err == nil && m.newest > 0 && b.at-m.newest > m.stall {
			err = m.stallError()
		}
		if err != nil {
			return err
		}
		m.timeout, m.closeWait, m.newest = m.stall, closeWait, b.at
		m.out = m.converter.push(b.samples, m.out)
		if m.kind == Mic {
			m.silence.add(measure(m.out))
		}
	}
	return nil
}

// silent names the device if it delivers only silence.
func (m *microphone) silent() (device string, s Silence) {
	return m.info.Name, m.silence.state()
}

// arrival is when the newest samples were read, and how many of them Read has not returned yet.
func (m *microphone) arrival() (int64, time.Duration) {
	return int64((len(m.out) - m.next) / len(m.converter.tracks)), m.newest
}

func (m *microphone) wait(ctx context.Context) (block, error) {
	select {
	case b, more := <-m.blocks:
		switch {
		case more:
			return b, nil
		case m.err == nil:
			return b, io.EOF
		}
		return b, hint.Errorf(lostHint, "the microphone %q failed: %w", m.info.Name, failure{m.err})
	case <-ctx.Done():
		return block{}, ctx.Err()
	case <-time.After(m.timeout):
		return block{}, m.stallError()
	}
}

// failure is what the driver of a device, or its recorder, said when it failed.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

const lostHint = "Connect it again and restart; the recording so far is complete."

// stallError stops a device that delivers nothing.
func (m *microphone) stallError() error {
	m.stop()
	m.closeWait = stalledCloseWait
	return hint.Errorf(lostHint, "the microphone %q stopped delivering audio: it was suspended or unplugged, or its driver stalled", m.info.Name)
}

// Close stops the device and waits until it is closed, for a limited time.
func (m *microphone) Close() error {
	m.stop()
	select {
	case <-m.ended:
	case <-time.After(m.closeWait):
		m.closeWait = 0
		if m.newest > 0 { // the first read of a device may take seconds
			m.noticeList.Add("the microphone driver did not respond; the device was not closed")
		}
	}
	return nil
}

// openAgain opens a device by its key, "" = the default one, that can take the place of this one.
func (m *microphone) openAgain(ctx context.Context, key string) (*microphone, error) {
	return m.openOther(ctx, func() (*microphone, error) { return openMicWith(ctx, key, m.micConfig) })
}

// openOther opens a device that can take the place of this one, and waits for its
// first audio.
func (m *microphone) openOther(ctx context.Context, open func() (*microphone, error)) (*microphone, error) {
	next, err := open()
	if err != nil {
		return nil, err
	}
	if next.info.Tracks != m.info.Tracks {
		next.release(ctx)
		return nil, hint.Errorf("Choose one with as many channels.", "%q has %s instead of %d", next.info.Name, channelCount(next.info.Tracks), m.info.Tracks)
	}
	if _, err := next.Read(ctx, make([]float32, ChunkSamples*m.info.Tracks)); err != nil {
		next.release(ctx)
		return nil, err
	}
	return next, nil
}

// release closes the device and waits until its owner has ended, for a limited
// time.
func (m *microphone) release(ctx context.Context) {
	_ = m.Close()
	select {
	case <-m.ended:
	case <-time.After(releaseWait):
	case <-ctx.Done():
	}
}

// discard drops what was delivered and not read.
func (m *microphone) discard() {
	m.out, m.next = m.out[:0], 0
	for {
		select {
		case b, more := <-m.blocks:
			if !more {
				return
			}
			m.newest = b.at
		default:
			return
		}
	}
}

// openDefault opens the default microphone, or the demo on a machine without
// one. A microphone that exists but does not open is an error.
func openDefault(ctx context.Context, selected Channels, mic func(context.Context, string, Channels) (*microphone, error)) (Source, error) {
	m, err := mic(ctx, "", selected)
	switch {
	case errors.Is(err, device.ErrNone):
		return openDemo(ctx, err.Error()+": playing the demo")
	case err != nil:
		return nil, err
	}
	return m, nil
}
