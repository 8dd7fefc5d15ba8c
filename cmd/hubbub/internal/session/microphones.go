package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"hubbub/capture"
	"hubbub/capture/device"
	"hubbub/tui/display"
)

// switchLimit bounds the opening of a chosen microphone.
const switchLimit = 20 * time.Second

// microphones lets the user of a session choose its microphone.
type microphones struct {
	chunks *capture.ChunkReader
	meter  capture.Meter
	ctx    context.Context // of the session
	end    context.CancelFunc

	mu   sync.Mutex // held while devices are listed or exchanged
	used string     // input that was chosen; "" = that of the start
}

func newMicrophones(chunks *capture.ChunkReader) *microphones {
	m := &microphones{chunks: chunks}
	m.ctx, m.end = context.WithCancel(context.Background())
	return m
}

// List waits for the sound system.
func (m *microphones) List() ([]display.Microphone, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return nil, errors.New("the session is over: it uses no microphone any more")
	}
	devices, err := device.List(m.ctx)
	if err != nil {
		return nil, err
	}
	list := make([]display.Microphone, len(devices))
	for i, d := range devices {
		list[i] = display.Microphone{Input: lastingInput(devices, d), Name: d.Name, System: d.HostAPI, Default: d.Default}
	}
	if i := usedMicrophone(list, m.chunks.Stats().Device, m.used); i >= 0 {
		list[i].Used = true
	}
	return list, nil
}

// lastingInput is the input of a device by what opens it again, if that is unique: its number is another
// one's when a device is removed.
func lastingInput(devices []device.Device, d device.Device) string {
	system := func(d device.Device) string { name, _, _ := strings.Cut(d.Input, ":"); return name }
	for _, o := range devices {
		if o.Input != d.Input && system(o) == system(d) && strings.EqualFold(o.Key(), d.Key()) {
			return d.Input
		}
	}
	return system(d) + ":" + d.Key()
}

// usedMicrophone is the index of the device with a name, or -1; of several, of the one that was
// chosen.
func usedMicrophone(list []display.Microphone, name, chosen string) int {
	first := -1
	for i, d := range list {
		if d.Name == name && (first < 0 || d.Input == chosen) {
			first = i
		}
	}
	return first
}

func (m *microphones) Measure(input string) { m.meter.Measure(m.ctx, input) }

func (m *microphones) Reading() (level display.Level, known bool, err error) {
	r := m.meter.Reading()
	return display.Level(r.Level), r.Known, r.Err
}

// Use waits until the device delivers audio. It ends the measurement before, because
// some devices can be opened once only.
func (m *microphones) Use(input string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.meter.Close()
	ctx, cancel := context.WithTimeout(m.ctx, switchLimit)
	defer cancel()
	before := m.chunks.Stats().Device
	if err := m.chunks.Switch(ctx, input); err != nil {
		return "", fmt.Errorf("%q is still used: %w", before, err)
	}
	m.used = input
	return fmt.Sprintf("%q is used now", m.chunks.Stats().Device), nil
}

// close ends what waits for a device.
func (m *microphones) close() {
	m.end()
	m.meter.Close()
}
