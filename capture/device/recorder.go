package device

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/capture/program"
	"hubbub/protocol/hint"
)

// A recorder is a program of the machine that writes the audio of a device to its
// standard output. It takes the place of PortAudio in a build without cgo, on a
// machine where PortAudio finds no device, and where --input names it.

// Recorder starts one kind of program.
type Recorder struct {
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
	// moved recognises a line of its standard error that says that its audio is now of another
	// device, and progress one that says that nothing is wrong; nil = there are none.
	moved, progress *regexp.Regexp
}

const (
	// firstAudio is how long a started recorder may deliver nothing.
	firstAudio = 3 * time.Second
	// listTimeout limits a process that lists devices.
	listTimeout = 3 * time.Second
	// maxList limits what is kept of a list of devices, in bytes.
	maxList = 4 << 20
)

// Open starts the program for a device by name or number, "" = the default, with
// all of its channels or mixed, and waits for its first audio. The process is killed when ctx ends.
func (r *Recorder) Open(ctx context.Context, want string, all bool) (Stream, error) {
	return r.openWithin(ctx, want, false, all, firstAudio)
}

// openWithin is Open for a microphone or the monitor of an output, with the time that
// the first audio may take.
func (r *Recorder) openWithin(ctx context.Context, want string, monitor, all bool, timeout time.Duration) (Stream, error) {
	if _, err := exec.LookPath(r.name); err != nil {
		return nil, hint.Errorf(recorderHint(), "%w: %s is not installed", ErrNone, r.name)
	}
	dev, err := r.find(ctx, want, monitor)
	if err != nil {
		return nil, err
	}
	channels := 1
	if all {
		channels = realChannels(dev)
	}
	p := &process{dev: dev, channels: channels, stop: func() {}, block: make([]byte, 2*BlockLength(audiofile.SampleRate)*channels)}
	p.samples = make([]float32, len(p.block)/2)
	ctx, p.kill = context.WithCancel(ctx)
	cmd := program.Command(ctx, r.name, r.args(ctx, dev, channels)...)
	if r.env != nil {
		cmd.Env = append(cmd.Environ(), r.env(ctx, dev.id)...)
	}
	p.complaint.Max = program.MaxComplaint
	cmd.Stderr = &p.complaint
	if r.progress != nil { // which is in English
		cmd.Env = append(cmd.Environ(), "LC_ALL=C")
		cmd.Stderr = &program.Lines{Each: func(line string) { p.complain(r, line) }}
	}
	p.wait = sync.OnceValue(func() error {
		defer time.AfterFunc(time.Second, p.kill).Stop()
		return cmd.Wait()
	})
	if p.out, err = cmd.StdoutPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.kill()
		return nil, hint.Errorf(recorderHint(), "cannot start %s: %w", r.name, err)
	}
	late := time.AfterFunc(timeout, p.kill)
	if _, err = io.ReadFull(p.out, p.block); err == nil && late.Stop() {
		p.pending = true
		if monitor && want == "" {
			p.follow(r)
		}
		return p, nil
	}
	late.Stop()
	reason := p.ended()
	if !p.complaint.Any() && ctx.Err() != nil {
		reason = fmt.Errorf("%s delivered nothing within %v", r.name, timeout)
	}
	_ = p.Close()
	return nil, hint.Errorf(Hint, "cannot open the device %q: %w", dev.Name, reason)
}

// find chooses a microphone or monitor by name, number or the program's own name for it.
func (r *Recorder) find(ctx context.Context, want string, monitor bool) (Device, error) {
	var list []Device
	if r.list != nil {
		var err error
		if list, err = r.list(ctx); err != nil {
			return Device{}, hint.Errorf(Hint, "%w: %w", ErrNone, err)
		}
	}
	if want == r.defaultName() { // as it was named when it was opened
		want = ""
	}
	other := Device{Name: want, HostAPI: r.name, Channels: 1, Rate: audiofile.SampleRate, id: want}
	if want == "" {
		other.Name = r.defaultName()
	}
	for _, d := range list { // in the place of a microphone also a monitor
		if d.id == want && (d.monitor || !monitor) {
			return d, nil
		}
	}
	dev, err := pickDevice(ofKind(list, monitor), want)
	if err != nil && r.unlisted {
		return other, nil
	}
	return dev, err
}

// defaultName is the name of a default device that list does not know.
func (r *Recorder) defaultName() string { return "default device of " + r.name }

// ofKind takes the monitors of outputs from a list, or the microphones.
func ofKind(list []Device, monitor bool) []Device {
	return slices.DeleteFunc(list, func(d Device) bool { return d.monitor != monitor })
}

// process is a running recorder.
type process struct {
	dev      Device
	channels int
	kill     context.CancelFunc
	// wait gives a process that has closed its output a moment to end by itself, so that
	// its exit code and last words are its own.
	wait      func() error
	out       io.ReadCloser
	complaint program.Tail
	block     []byte
	pending   bool // block has not been read yet
	samples   []float32
	stop      func() // ends watch
}

// follow ends the process when another output is the default one.
func (p *process) follow(r *Recorder) {
	p.dev.follows = true
	p.stop = watch(func(ctx context.Context) (more bool) {
		if d, err := r.find(ctx, "", true); err != nil || d.id == p.dev.id {
			return true
		}
		p.end("another output is the default now")
		return false
	})
}

// end ends the process for a reason, which its complaint then is.
func (p *process) end(reason string) {
	_, _ = p.complaint.Write([]byte(reason + "\n"))
	p.kill()
}

// complain takes a line of its standard error. When it says that its audio is of another device,
// which a sound server may do when one is removed, it is ended: the source then opens the
// device again, or the default one under its own name.
func (p *process) complain(r *Recorder, line string) {
	switch {
	case r.moved.MatchString(line):
		p.end("the sound server moved it to another device")
	case !r.progress.MatchString(line):
		_, _ = p.complaint.Write([]byte(line + "\n"))
	}
}

func (p *process) Device() Device     { return p.dev }
func (p *process) Format() (int, int) { return audiofile.SampleRate, p.channels }
func (p *process) Source() string     { return "" }

func (p *process) Read() ([]float32, bool, error) {
	if !p.pending {
		if _, err := io.ReadFull(p.out, p.block); err != nil {
			return nil, false, p.ended()
		}
	}
	p.pending = false
	for i := range p.samples {
		p.samples[i] = float32(int16(binary.LittleEndian.Uint16(p.block[2*i:]))) / (1 << 15)
	}
	return p.samples, false, nil
}

// ended is why the process delivers no more audio. It does not outlive this.
func (p *process) ended() error {
	err, text := p.wait(), p.complaint.Last()
	switch {
	case text != "":
		return fmt.Errorf("%s ended: %s", p.dev.HostAPI, text)
	case err != nil:
		return fmt.Errorf("%s ended: %w", p.dev.HostAPI, err)
	}
	return errors.New(p.dev.HostAPI + " ended")
}

func (p *process) Close() error {
	p.stop()
	p.kill()
	_ = p.wait()
	return nil
}
