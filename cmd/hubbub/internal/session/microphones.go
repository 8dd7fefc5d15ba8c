package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

	mu sync.Mutex // held while devices are listed or exchanged
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
		list[i] = display.Microphone{Input: lastingInput(devices, d), Name: listedName(devices, d), System: d.HostAPI, Default: d.Default}
	}
	if i := openDevice(devices, m.chunks.Stats().Open); i >= 0 {
		list[i].Used = true
	}
	return list, nil
}

// listedName is the name of a device, with its input where another device of the sound system has that name, too.
func listedName(devices []device.Device, d device.Device) string {
	same := func(o device.Device) bool { return o.Input != d.Input && o.HostAPI == d.HostAPI && o.Name == d.Name }
	if slices.ContainsFunc(devices, same) {
		return d.Name + " (" + d.Input + ")"
	}
	return d.Name
}

// lastingInput is the input of a device by what opens it again, if that is unique: its number is another
// one's when a device is removed.
func lastingInput(devices []device.Device, d device.Device) string {
	system := func(d device.Device) string { name, _, _ := strings.Cut(d.Input, ":"); return name }
	same := func(o device.Device) bool {
		return o.Input != d.Input && system(o) == system(d) && strings.EqualFold(o.Key(), d.Key())
	}
	if slices.ContainsFunc(devices, same) {
		return d.Input
	}
	return system(d) + ":" + d.Key()
}

// openDevice is the index of a device that is open, or -1. Its number may be another one now; of several with what opens
// it, it is the one that has that number.
func openDevice(devices []device.Device, open device.Device) int {
	found := -1
	for i, d := range devices {
		if d.HostAPI == open.HostAPI && d.Key() == open.Key() && (found < 0 || d.Number == open.Number) {
			found = i
		}
	}
	return found
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
	name, err := m.chunks.Switch(ctx, input)
	if err != nil {
		return "", fmt.Errorf("%q is still used: %w", before, err)
	}
	return fmt.Sprintf("%q is used now", name), nil
}

func (m *microphones) close() {
	m.end()
	m.meter.Close()
}
