package device

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"hubbub/capture/audiofile"
	"hubbub/capture/program"
	"hubbub/protocol/hint"
)

// recorders are the known programs in the order in which they are tried: the sound
// servers before the hardware, which a sound server may occupy.
var recorders = []*Recorder{
	{name: "pw-record", system: "linux", args: pipewireArgs, list: listPipeWire},
	{name: "parec", args: pulseArgs, list: listPulse,
		moved:    regexp.MustCompile("^Stream moved to device"),
		progress: regexp.MustCompile("^$|^Opening a |^Connection established|^Stream (successfully created|started|device|underrun|overrun|buffer)|^Buffer metrics|^Using sample spec|^Connected to device|^Time: |^Got |^Draining ")},
	{name: "arecord", system: "linux", unlisted: true, list: listALSA,
		args: func(_ context.Context, d Device, channels int) []string {
			args := []string{"-q", "-t", "raw", "-f", "S16_LE", "-r", strconv.Itoa(audiofile.SampleRate), "-c", strconv.Itoa(channels)}
			if d.id != "" {
				args = append(args, "-D", d.id)
			}
			return args
		}},
	{name: "ffmpeg", unlisted: true, args: ffmpegArgs, list: listFFmpeg},
	{name: "sox", unlisted: true,
		args: func(_ context.Context, _ Device, channels int) []string {
			return []string{"-q", "-d", "-t", "raw", "-r", strconv.Itoa(audiofile.SampleRate), "-c", strconv.Itoa(channels), "-b", "16", "-e", "signed-integer", "-L", "-"}
		},
		env: soxEnv},
}

// soxEnv names the device of sox. Its driver for ALSA, which it prefers, does not
// know the sources of PulseAudio.
func soxEnv(ctx context.Context, device string) []string {
	env := []string{"PULSE_LATENCY_MSEC=50"} // without it, PulseAudio gives sox blocks of 2 s
	if device == "" {
		return env
	}
	sources, _ := listPulse(ctx) // none without PulseAudio
	if slices.ContainsFunc(sources, func(d Device) bool { return d.id == device }) {
		env = append(env, "AUDIODRIVER=pulseaudio")
	}
	return append(env, "AUDIODEV="+device)
}

func pipewireArgs(ctx context.Context, d Device, channels int) []string {
	args := []string{"--rate", strconv.Itoa(audiofile.SampleRate), "--channels", strconv.Itoa(channels), "--format", "s16", "--latency", "50ms"}
	help, _ := output(ctx, "pw-record", "--help") // without it, as an old version
	var properties string
	if d.id != "" {
		args = append(args, "--target", d.id)
		if strings.Contains(help, "--properties") { // when it is removed, the session manager may not connect another one
			properties = "node.dont-reconnect = true "
		}
	}
	if d.monitor {
		properties += "stream.capture.sink = true "
	}
	if properties != "" {
		args = append(args, "--properties", "{ "+properties+"}")
	}
	if strings.Contains(help, "--raw") { // newer versions write a header without
		args = append(args, "--raw")
	}
	return append(args, "-")
}

func pulseArgs(_ context.Context, d Device, channels int) []string {
	args := []string{"--verbose", "--raw", "--format=s16le", "--rate=" + strconv.Itoa(audiofile.SampleRate), "--channels=" + strconv.Itoa(channels), "--latency-msec=50", "--client-name=hubbub"}
	if d.id != "" {
		args = append(args, "--device="+d.id)
	}
	return args
}

// ffmpegFormat is the input format of ffmpeg for microphones, by GOOS.
var ffmpegFormat = map[string]string{"darwin": "avfoundation", "windows": "dshow", "linux": "pulse"}

func ffmpegArgs(_ context.Context, d Device, channels int) []string {
	device := d.id
	format := ffmpegFormat[runtime.GOOS]
	switch {
	case format == "avfoundation":
		device = ":" + device // before the colon is the camera
		if device == ":" {
			device = ":default"
		}
	case format == "dshow":
		device = "audio=" + device
	case device == "":
		device = "default"
	}
	return []string{"-hide_banner", "-nostdin", "-loglevel", "error", "-fflags", "nobuffer", "-f", format, "-i", device,
		"-ac", strconv.Itoa(channels), "-ar", strconv.Itoa(audiofile.SampleRate), "-f", "s16le", "-flush_packets", "1", "-"}
}

// FindRecorder is the recorder of that name; nil = none.
func FindRecorder(name string) *Recorder {
	for _, r := range recorders {
		if r.name == name {
			return r
		}
	}
	return nil
}

// available reports whether the recorder is for this system and installed.
func (r *Recorder) available() bool {
	if r.system != "" && r.system != runtime.GOOS {
		return false
	}
	_, err := exec.LookPath(r.name)
	return err == nil
}

// OpenRecorder opens a device by name or number, "" = the default one, with the
// first recorder that can.
func OpenRecorder(ctx context.Context, want string, all bool) (Stream, error) {
	var tried []error
	noMicrophone := false // a sound server says that there is no microphone
	for _, r := range recorders {
		if !r.available() || noMicrophone && r.unlisted && want == "" { // whose default would be what the server plays
			continue
		}
		s, err := r.Open(ctx, want, all)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		noMicrophone = noMicrophone || errors.Is(err, errNoMicrophone)
		tried = append(tried, err)
	}
	if len(tried) == 0 {
		return nil, noRecorder()
	}
	if want == "" {
		texts := make([]string, len(tried))
		for i, err := range tried {
			texts[i] = strings.TrimPrefix(err.Error(), ErrNone.Error()+": ")
		}
		return nil, hint.Errorf(Hint, "%w: %s", ErrNone, strings.Join(texts, "; "))
	}
	// One that cannot ask its sound server knows of no device: another one's error says more.
	known := max(0, slices.IndexFunc(tried, func(err error) bool { return !errors.Is(err, ErrNone) }))
	return nil, tried[known]
}

// Missing says what a build without PortAudio needs on a machine without recorders,
// where a microphone cannot be seen; nil in any other case.
func Missing() error {
	if HasPortAudio || slices.ContainsFunc(recorders, (*Recorder).available) {
		return nil
	}
	return noRecorder()
}

func noRecorder() error {
	return hint.Errorf(recorderHint(), "%w: this build has no PortAudio, and the machine none of the recorders %s", ErrNone, recorderNames())
}

// recorderNames are the names of those for this system.
func recorderNames() string {
	var names []string
	for _, r := range recorders {
		if r.system == "" || r.system == runtime.GOOS {
			names = append(names, r.name)
		}
	}
	return strings.Join(names, ", ")
}

func recorderHint() string {
	program := "ffmpeg"
	if runtime.GOOS == "linux" {
		program = "parec (Debian: pulseaudio-utils) or arecord (alsa-utils)"
	}
	return "Install " + program + ", or use a file with --input FILE."
}

// recorderDevices lists the microphones of the installed recorders. One whose sound
// server does not run has none.
func recorderDevices(ctx context.Context) (all []Device) {
	for _, r := range recorders {
		if !r.available() || r.list == nil {
			continue
		}
		list, err := r.list(ctx)
		if err != nil {
			continue
		}
		for _, d := range ofKind(list, false) {
			d.Input = r.name + ":" + strconv.Itoa(d.Number)
			all = append(all, d)
		}
	}
	return all
}

// output is what a process writes that lists something; the error has its last words.
func output(ctx context.Context, name string, args ...string) (string, error) {
	text, complaint, err := outputs(ctx, name, args...)
	if err != nil && complaint.Any() {
		err = errors.New(complaint.Last())
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return text.String(), nil
}

// outputs is what a process writes to its standard output and error.
func outputs(ctx context.Context, name string, args ...string) (stdout, stderr *program.Tail, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	cmd := program.Command(ctx, name, args...)
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	stdout, stderr = &program.Tail{Max: maxList}, &program.Tail{Max: maxList}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err = cmd.Run(); ctx.Err() != nil {
		err = fmt.Errorf("no response within %v", listTimeout)
	}
	return stdout, stderr, err
}
