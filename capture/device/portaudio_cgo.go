//go:build cgo

package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gordonklaus/portaudio"

	"hubbub/capture/audiofile"
	"hubbub/protocol/hint"
)

// HasPortAudio reports whether this build uses PortAudio.
const HasPortAudio = true

// paLock is held for everything but reading: PortAudio's set-up is not
// reentrant. It is a channel so that waiting for it can time out when the library
// blocks.
var paLock = make(chan struct{}, 1)

// withPortAudio runs f with paLock held and the library's output discarded.
func withPortAudio(ctx context.Context, f func() error) error {
	select {
	case paLock <- struct{}{}:
	case <-ctx.Done():
		return hint.Errorf("Restart the sound server, or give --input FILE.", "the sound system does not respond: %w", ctx.Err())
	}
	defer func() { <-paLock }()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := checkALSAConfig(); err != nil {
		return err
	}
	discardNativeStderr()
	return f()
}

func noSound(err error) error {
	return hint.Errorf(Hint, "the sound system does not start: %w", err)
}

// portAudioDevices lists the capture devices, without those that record what the machine plays.
func portAudioDevices(ctx context.Context) ([]Device, error) {
	var list []Device
	err := withPortAudio(ctx, func() error {
		err := portaudio.Initialize()
		if err != nil {
			return noSound(err)
		}
		list, _, err = listNative()
		return errors.Join(err, portaudio.Terminate())
	})
	if PlaysOnly(ctx) {
		list = slices.DeleteFunc(list, ofSoundServer)
	}
	return list, err
}

// ofSoundServer reports whether a device is what the sound server gives to ALSA.
func ofSoundServer(d Device) bool { return d.Name == "default" || d.Name == "pulse" }

// listNative lists the capture devices, with the library's records of them by
// number. The library must be initialized.
func listNative() ([]Device, map[int]*portaudio.DeviceInfo, error) {
	all, err := portaudio.Devices()
	if err != nil {
		return nil, nil, noSound(err)
	}
	defaultIndex := -1
	if d, err := portaudio.DefaultInputDevice(); err == nil && d != nil {
		defaultIndex = d.Index
	}
	var list []Device
	records := map[int]*portaudio.DeviceInfo{}
	for _, d := range all {
		if d.MaxInputChannels < 1 {
			continue
		}
		list = append(list, Device{
			Number: d.Index, Name: d.Name, HostAPI: d.HostApi.Name, Channels: d.MaxInputChannels,
			Rate: d.DefaultSampleRate, Default: d.Index == defaultIndex,
		})
		records[d.Index] = d
	}
	return list, records, nil
}

// paStream is a running device.
type paStream struct {
	dev            Device
	rate, channels int
	stream         *portaudio.Stream
	buf            []float32 // the library writes here

	noMicrophone atomic.Bool  // set by watch
	source       atomic.Value // likewise; a string
	stop         func()       // ends watch
}

// watch notices which microphone the sound server gives to ALSA's devices of it, which follow it without
// notice, and that it has none left: they are then what the machine plays. A server that has
// none from the start was chosen for that.
func (s *paStream) watch() {
	first := true
	s.stop = watch(func(ctx context.Context) (more bool) {
		sources, err := pulse(ctx, "list", "sources")
		switch {
		case err != nil:
		case playOnly(sources):
			s.noMicrophone.Store(!first)
			return false
		default:
			s.source.Store(recordedSource(ctx, sources, os.Getpid()))
		}
		first = false
		return true
	})
}

// Open opens and starts a device: at 16 kHz mono if the device supports
// it, else at its default rate with as few channels as possible.
func Open(ctx context.Context, want string, all bool) (Stream, error) {
	var s *paStream
	err := withPortAudio(ctx, func() error {
		if err := portaudio.Initialize(); err != nil {
			return noSound(err)
		}
		var err error
		if s, err = startDevice(want, all); err != nil {
			return errors.Join(err, portaudio.Terminate())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func startDevice(want string, all bool) (*paStream, error) {
	list, records, err := listNative()
	if err != nil {
		return nil, err
	}
	dev, err := pickDevice(list, want)
	if err != nil {
		return nil, err
	}
	info := records[dev.Number]
	deviceRate := int(math.Round(dev.Rate))
	var last error
	tried := map[[2]int]bool{}
	formats := [][2]int{{audiofile.SampleRate, 1}, {deviceRate, 1}, {deviceRate, 2}, {deviceRate, dev.Channels}, {48000, 1}, {44100, 1}, {48000, 2}, {44100, 2}}
	if all {
		n := realChannels(dev)
		formats = [][2]int{{audiofile.SampleRate, n}, {deviceRate, n}, {48000, n}, {44100, n}}
	}
	for _, format := range formats {
		rate, channels := format[0], format[1]
		if rate < audiofile.MinRate || channels > dev.Channels || tried[format] {
			continue
		}
		tried[format] = true
		s := &paStream{dev: dev, rate: rate, channels: channels, buf: make([]float32, BlockLength(rate)*channels), stop: func() {}}
		p := portaudio.StreamParameters{SampleRate: float64(rate), FramesPerBuffer: BlockLength(rate)}
		// Latency here is the size of the device's buffer: long enough for
		// delays of a busy machine.
		p.Input = portaudio.StreamDeviceParameters{Device: info, Channels: channels, Latency: max(200*time.Millisecond, info.DefaultHighInputLatency)}
		if last = portaudio.IsFormatSupported(p, s.buf); last != nil {
			continue
		}
		if s.stream, last = portaudio.OpenStream(p, s.buf); last != nil {
			continue
		}
		if last = s.stream.Start(); last != nil {
			_ = s.stream.Close()
			continue
		}
		if ofSoundServer(dev) {
			s.watch()
		}
		return s, nil
	}
	return nil, hint.Errorf("Check whether another program uses it, or choose another one: "+listDevices(list), "cannot open the microphone %q: %w", dev.Name, last)
}

func (s *paStream) Device() Device     { return s.dev }
func (s *paStream) Format() (int, int) { return s.rate, s.channels }

func (s *paStream) Source() string {
	name, _ := s.source.Load().(string)
	return name
}

func (s *paStream) Read() ([]float32, bool, error) {
	err := s.stream.Read()
	if errors.Is(err, portaudio.InputOverflowed) {
		return s.buf, true, nil // the buffer is valid; audio before it was lost
	}
	if err == nil && s.noMicrophone.Load() {
		return s.buf, false, ErrPlaysOnly
	}
	if host, ok := errors.AsType[portaudio.UnanticipatedHostError](err); ok && host.Text == "" {
		err = fmt.Errorf("the sound server or the driver disappeared (code %d)", host.Code)
	}
	return s.buf, false, err
}

// Close is called by the reading goroutine, so that no read is in progress.
func (s *paStream) Close() error {
	s.stop()
	return withPortAudio(context.Background(), func() error {
		// Abort, because the audio still in the device is not needed.
		err := s.stream.Abort()
		if errors.Is(err, portaudio.StreamIsStopped) {
			err = nil
		}
		if err = cmp.Or(err, s.stream.Close(), portaudio.Terminate()); err != nil {
			return fmt.Errorf("closing the device: %w", err)
		}
		return nil
	})
}
