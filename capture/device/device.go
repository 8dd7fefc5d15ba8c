// Package device opens the capture devices of the machine: with PortAudio, or with a program that records one.
package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hubbub/protocol/hint"
)

// Device is a capture device.
type Device struct {
	Number   int     `json:"number"` // for "mic:NUMBER"; constant until a device is added or removed
	Name     string  `json:"name"`
	HostAPI  string  `json:"host_api"` // ALSA, Core Audio, WASAPI...
	Channels int     `json:"channels"` // at most
	Rate     float64 `json:"rate"`     // default rate, in Hz
	Default  bool    `json:"default"`
	Input    string  `json:"input"` // for --input

	id      string // of a recorder's device: its own name for it; "" = the default
	monitor bool   // what an output plays
	follows bool   // it was opened as the default output, and is replaced by another one that becomes that
}

// Key is what opens the device again; "" = the default.
func (d Device) Key() string {
	if d.follows {
		return ""
	}
	return cmp.Or(d.id, d.Name)
}

// ErrNone says that the machine has no capture device, or that this build cannot use one.
var ErrNone = errors.New("no capture device")

// errNoMicrophone is the ErrNone of a sound system that responds and lists none.
var errNoMicrophone = fmt.Errorf("%w on this machine", ErrNone)

// ErrNoMatch says that no device has the name or number that was asked for.
var ErrNoMatch = errors.New("no capture device matches")

// MaxChannels is the largest number of channels that are captured apart.
const MaxChannels = 8

// Stream is one open, running device. Every method but Source is called by the one
// goroutine that opened it.
type Stream interface {
	Device() Device
	// Format returns the rate in Hz and the number of channels it was opened with.
	Format() (rate, channels int)
	// Read blocks until it has 100 ms of interleaved samples, which are valid
	// until the next read. lost: audio before them was lost.
	Read() (samples []float32, lost bool, err error)
	// Source is the name of what a sound server gives to the device; "" = unknown. It may be
	// called from any goroutine, also after Close.
	Source() string
	Close() error
}

// Opener opens a device by name or number; "" = the default. all: with all of
// its channels, else with as few as possible.
type Opener func(ctx context.Context, want string, all bool) (Stream, error)

// Timeout limits listing and opening devices in the native library, which
// a sound server that does not respond can block forever.
const Timeout = 10 * time.Second

// Hint is the next step after an error of a device.
const Hint = "`hubbub devices` lists the microphones. Without one: --input FILE."

// List lists the capture devices of PortAudio, where it is compiled in, and of
// the recorders that are installed. Default is the device of "mic". An empty list
// is not an error.
func List(ctx context.Context) ([]Device, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	var list []Device
	listed := make(chan error, 1)
	go func() {
		var err error
		list, err = portAudioDevices(ctx)
		for i := range list {
			list[i].Input = "mic:" + strconv.Itoa(list[i].Number)
		}
		list = append(list, recorderDevices(ctx)...)
		found := false
		for i := range list {
			list[i].Default = list[i].Default && !found
			found = found || list[i].Default
		}
		if len(list) > 0 {
			err = nil
		}
		listed <- err
	}()
	select {
	case err := <-listed:
		return list, err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, hint.Errorf("Restart the sound server, or give --input FILE.", "the sound system does not respond")
		}
		return nil, ctx.Err()
	}
}

// pickDevice finds the device that want names: "" = the default, a number, or a
// substring of the name, ignoring case. The full name takes precedence over a
// substring, and the default device's host API over others.
func pickDevice(all []Device, want string) (Device, error) {
	if len(all) == 0 {
		return Device{}, hint.Errorf("Connect a microphone (`hubbub devices` lists them), or use a file with --input FILE.", "%w", errNoMicrophone)
	}
	want = strings.TrimSpace(want)
	preferred := slices.IndexFunc(all, func(d Device) bool { return d.Default })
	if want == "" {
		if preferred >= 0 {
			return all[preferred], nil
		}
		return Device{}, hint.Errorf("Choose one with --input mic:NAME: "+listDevices(all), "no capture device is the default")
	}
	if n, err := strconv.Atoi(want); err == nil {
		if i := slices.IndexFunc(all, func(d Device) bool { return d.Number == n }); i >= 0 {
			return all[i], nil
		}
	}
	api := ""
	if preferred >= 0 {
		api = all[preferred].HostAPI
	}
	lower := strings.ToLower(want)
	equal := func(d Device) bool { return strings.ToLower(d.Name) == lower }
	contains := func(d Device) bool { return strings.Contains(strings.ToLower(d.Name), lower) }
	for _, matches := range []func(Device) bool{equal, contains} {
		var found, native []Device
		for _, d := range all {
			if matches(d) {
				found = append(found, d)
				if d.HostAPI == api {
					native = append(native, d)
				}
			}
		}
		if len(found) > 1 && len(native) == 1 {
			found = native
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return Device{}, hint.Errorf("Give a longer part of the name, or the number: "+listDevices(found), "%d devices match %q", len(found), want)
		}
	}
	return Device{}, hint.Errorf("Available: "+listDevices(all), "%w %q", ErrNoMatch, want)
}

// realChannels are the channels of a device. Some claim 32 and more, because they
// convert any number.
func realChannels(d Device) int {
	if d.Channels > MaxChannels {
		return 2
	}
	return max(1, d.Channels)
}

func listDevices(all []Device) string {
	s := make([]string, len(all))
	for i, d := range all {
		s[i] = fmt.Sprintf("%d %s", d.Number, d.Name)
	}
	return strings.Join(s, "; ")
}

// BlockLength is the number of samples of one channel in 100 ms.
func BlockLength(rate int) int { return max(1, rate/10) }
