package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// A recorder is a program of the machine that writes the audio of a device to its
// standard output. It takes the place of PortAudio in a build without cgo, on a
// machine where PortAudio finds no device, and where --input names it.

// recorder starts one kind of program.
type recorder struct {
	name string // as in --input NAME and --input NAME:DEVICE
	// system is the GOOS that it is tried on; "" = every one.
	system string
	// args are those of a process that records a device as raw little-endian 16-bit samples at 16 kHz in so many channels.
	args func(ctx context.Context, d Device, channels int) []string
	env  func(ctx context.Context, device string) []string // nil = none in addition
	// list lists the devices, of which the sound system has a default; nil = the
	// program cannot.
	list func(ctx context.Context) ([]Device, error)
	// unlisted: the program has devices that list does not know.
	unlisted bool
}

const (
	// firstAudio is how long a started recorder may deliver nothing.
	firstAudio = 3 * time.Second
	// listTimeout limits a process that lists devices.
	listTimeout = 3 * time.Second
	// maxComplaint limits what is kept of a process's standard error, and maxList
	// what is kept of a list of devices, in bytes.
	maxComplaint = 2 << 10
	maxList      = 4 << 20
)

// open starts the program for a device by name or number, "" = the default, with
// all of its channels or mixed, and waits for its first audio. The process is killed when ctx ends.
func (r *recorder) open(ctx context.Context, want string, all bool) (nativeStream, error) {
	return r.openWithin(ctx, want, all, firstAudio)
}

func (r *recorder) openWithin(ctx context.Context, want string, all bool, patience time.Duration) (nativeStream, error) {
	return r.openDevice(ctx, func(ctx context.Context) (Device, error) { return r.find(ctx, want) }, all, patience)
}

func (r *recorder) openDevice(ctx context.Context, find func(context.Context) (Device, error), all bool, patience time.Duration) (nativeStream, error) {
	if _, err := exec.LookPath(r.name); err != nil {
		return nil, fail(recorderHint(), "%w: %s is not installed", errNoDevice, r.name)
	}
	dev, err := find(ctx)
	if err != nil {
		return nil, err
	}
	channels := 1
	if all {
		channels = realChannels(dev)
	}
	p := &process{dev: dev, channels: channels, complaint: tail{max: maxComplaint}, block: make([]byte, 2*blockLength(SampleRate)*channels)}
	p.samples = make([]float32, len(p.block)/2)
	ctx, p.kill = context.WithCancel(ctx)
	p.cmd = exec.CommandContext(ctx, r.name, r.args(ctx, dev, channels)...)
	if r.env != nil {
		p.cmd.Env = append(p.cmd.Environ(), r.env(ctx, dev.id)...)
	}
	ownProcess(p.cmd)
	p.cmd.Stderr, p.cmd.WaitDelay = &p.complaint, time.Second
	if p.out, err = p.cmd.StdoutPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.kill()
		return nil, fail(recorderHint(), "cannot start %s: %w", r.name, err)
	}
	late := time.AfterFunc(patience, p.kill)
	if _, err = io.ReadFull(p.out, p.block); err == nil && late.Stop() {
		p.pending = true
		return p, nil
	}
	late.Stop()
	reason := p.ended(r.name)
	if !p.complaint.any() && ctx.Err() != nil {
		reason = fmt.Errorf("%s delivers nothing", r.name)
	}
	_ = p.close()
	return nil, fail(deviceHint, "cannot open the device %q: %w", dev.Name, reason)
}

// openMic opens a device of the recorder as a source.
func (r *recorder) openMic(ctx context.Context, want string, selected Channels) (Source, error) {
	return openMicWith(ctx, want, micConfig{r.open, selected, stallAfter, elapsed})
}

// find chooses a device by name, number or the program's own name for it.
func (r *recorder) find(ctx context.Context, want string) (Device, error) {
	var list []Device
	if r.list != nil {
		var err error
		if list, err = r.list(ctx); err != nil {
			return Device{}, fail(deviceHint, "%w: %w", errNoDevice, err)
		}
	}
	if want == r.defaultName() { // as it was named when it was opened
		want = ""
	}
	other := Device{Name: want, HostAPI: r.name, Channels: 1, Rate: SampleRate, id: want}
	if want == "" {
		other.Name = r.defaultName()
	}
	for _, d := range list { // also one that is not a microphone
		if d.id == want {
			return d, nil
		}
	}
	dev, err := pickDevice(microphones(list), want)
	if err != nil && r.unlisted {
		return other, nil
	}
	return dev, err
}

// defaultName is the name of a default device that list does not know.
func (r *recorder) defaultName() string { return "default device of " + r.name }

// findOutput chooses an output, whose monitor is recorded.
func (r *recorder) findOutput(ctx context.Context, want string) (Device, error) {
	list, err := r.list(ctx)
	if err != nil {
		return Device{}, fail(deviceHint, "%w: %w", errNoDevice, err)
	}
	list = slices.DeleteFunc(list, func(d Device) bool { return !d.monitor })
	for _, d := range list { // as it was named when it was opened
		if d.id == want {
			return d, nil
		}
	}
	return pickDevice(list, want)
}

// microphones are the devices that are not monitors of an output.
func microphones(list []Device) (mics []Device) {
	for _, d := range list {
		if !d.monitor {
			mics = append(mics, d)
		}
	}
	return mics
}

// process is a running recorder.
type process struct {
	dev       Device
	channels  int
	cmd       *exec.Cmd
	kill      context.CancelFunc
	out       io.ReadCloser
	complaint tail
	block     []byte
	pending   bool // block has not been read yet
	samples   []float32
	waited    bool
	waitErr   error
}

func (p *process) device() Device     { return p.dev }
func (p *process) format() (int, int) { return SampleRate, p.channels }

func (p *process) read() ([]float32, bool, error) {
	if !p.pending {
		if _, err := io.ReadFull(p.out, p.block); err != nil {
			return nil, false, p.ended(p.cmd.Args[0])
		}
	}
	p.pending = false
	for i := range p.samples {
		p.samples[i] = float32(int16(binary.LittleEndian.Uint16(p.block[2*i:]))) / (1 << 15)
	}
	return p.samples, false, nil
}

// ended is why the process delivers no more audio. It does not outlive this.
func (p *process) ended(name string) error {
	p.wait()
	switch text := p.complaint.last(); {
	case text != "":
		return fmt.Errorf("%s ended: %s", name, text)
	case p.waitErr != nil:
		return fmt.Errorf("%s ended: %w", name, p.waitErr)
	}
	return errors.New(name + " ended")
}

// wait gives a process that has closed its output a moment to end by itself, so
// that its exit code and last words are its own.
func (p *process) wait() {
	if p.waited {
		return
	}
	p.waited = true
	late := time.AfterFunc(time.Second, p.kill)
	p.waitErr = p.cmd.Wait()
	late.Stop()
}

func (p *process) close() error {
	p.kill()
	p.wait()
	return nil
}

// tail keeps the last bytes of an output.
type tail struct {
	max  int // bytes
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if extra := len(t.kept) - t.max; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(b), nil
}

func (t *tail) any() bool { return t.last() != "" }

// last is the last line that is not blank, for display.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.kept), []byte("\n"))
	return printable(string(lines[len(lines)-1]))
}

// printable is text of another program on one line.
func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
}
