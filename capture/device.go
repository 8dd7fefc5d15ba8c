package capture

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Device is one device that can capture.
type Device struct {
	Number   int     `json:"number"` // for "mic:NUMBER"; stays while nothing is plugged in or out
	Name     string  `json:"name"`
	HostAPI  string  `json:"host_api"` // ALSA, Core Audio, WASAPI...
	Channels int     `json:"channels"` // at most
	Rate     float64 `json:"rate"`     // its own, in Hz
	Default  bool    `json:"default"`
}

// errNoDevice: the machine, or this build, has nothing that captures.
var errNoDevice = errors.New("no capture device")

// nativeTimeout bounds what the native library may take to list or open
// devices; a sound server that hangs can keep it for ever.
const nativeTimeout = 10 * time.Second

const deviceHint = "`hubbub devices` lists the microphones. Without one: --input FILE."

// Devices lists the capture devices; none is no error.
func Devices(ctx context.Context) ([]Device, error) {
	type answer struct {
		list []Device
		err  error
	}
	ctx, cancel := context.WithTimeout(ctx, nativeTimeout)
	defer cancel()
	ch := make(chan answer, 1)
	go func() {
		list, err := nativeDevices(ctx)
		ch <- answer{list, err}
	}()
	select {
	case a := <-ch:
		return a.list, a.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fail("Restart the sound server, or give --input FILE.", "the sound system does not answer")
		}
		return nil, ctx.Err()
	}
}

// NativeLog is what the native audio library printed so far, at most the last
// 64 KB: lines that explain why a device is missing, kept from the screen.
func NativeLog() string { return nativeLog() }

// pickDevice finds the device that want names: "" = the default, a number, or a
// part of a name, in any case. A whole name goes before a part of one, and the
// default device's host API before others.
func pickDevice(all []Device, want string) (Device, error) {
	if len(all) == 0 {
		return Device{}, &hinted{fmt.Errorf("%w on this machine", errNoDevice), "Plug in a microphone, or play a file with --input FILE."}
	}
	want = strings.TrimSpace(want)
	if want == "" {
		for _, d := range all {
			if d.Default {
				return d, nil
			}
		}
		return Device{}, fail("Choose one with --input mic:NAME: "+listDevices(all), "no capture device is the default one")
	}
	if n, err := strconv.Atoi(want); err == nil {
		for _, d := range all {
			if d.Number == n {
				return d, nil
			}
		}
	}
	api := ""
	for _, d := range all {
		if d.Default {
			api = d.HostAPI
		}
	}
	low := strings.ToLower(want)
	whole := func(d Device) bool { return strings.ToLower(d.Name) == low }
	part := func(d Device) bool { return strings.Contains(strings.ToLower(d.Name), low) }
	for _, fits := range []func(Device) bool{whole, part} {
		var found, native []Device
		for _, d := range all {
			if fits(d) {
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
			return Device{}, fail("Give a longer part of the name, or the number: "+listDevices(found), "%d devices fit %q", len(found), want)
		}
	}
	return Device{}, fail("There are: "+listDevices(all), "no capture device fits %q", want)
}

func listDevices(all []Device) string {
	s := make([]string, len(all))
	for i, d := range all {
		s[i] = fmt.Sprintf("%d %s", d.Number, d.Name)
	}
	return strings.Join(s, "; ")
}
