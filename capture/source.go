package capture

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/capture/device"
)

// Kind is the kind of a source.
type Kind string

// The kinds of source.
const (
	Mic      Kind = "mic"
	Speakers Kind = "speakers" // what the machine plays
	File     Kind = "file"
	Stdin    Kind = "stdin"
	Demo     Kind = "demo"
)

// Live reports whether a source of the kind is a device, which cannot wait.
func (k Kind) Live() bool { return k == Mic || k == Speakers }

// Info describes a source as it was opened.
type Info struct {
	Kind Kind
	// Name is for display: a device's name, a file's path.
	Name string
	// Source is the microphone that a sound server gives to the device, which may change;
	// "" = unknown, or the device itself.
	Source string
	// Base is the name for RTTM: a file's base name without its ending, else "live".
	Base string
	// Rate (Hz) and Channels are those of the input, before conversion.
	Rate, Channels int
	// Tracks is the number of channels that are kept apart, or 1.
	Tracks int
	// Duration is the length of the input; 0 = unknown or endless.
	Duration time.Duration
	// Estimate is what another decoder says of an unknown length, for progress; it
	// may be wrong. 0 = unknown.
	Estimate time.Duration
	// Notice is one line for the user, known when the source was opened; "" =
	// none. Later notices are in Stats.Notices.
	Notice string
}

// Source delivers audio as 16 kHz float32, mono or in tracks, whatever the format of the input.
// It is for one reader at a time.
type Source interface {
	Info() Info
	// Notices are those that arose while it was read, so far: a truncated file, samples
	// that are not numbers.
	Notices() []string
	// Read reads up to len(dst) samples into dst and returns their number. With
	// several tracks they are interleaved, and len(dst) and the number are multiples
	// of Info.Tracks. It blocks until there is at least one, the input ends (io.EOF, with n = 0),
	// or ctx ends. After any error, also ctx's, the source can only be closed.
	Read(ctx context.Context, dst []float32) (int, error)
	// Close releases the source's resources. It must not be called during a
	// Read; it may be called more than once.
	Close() error
}

// Decode reads an input to its end: 16 kHz, mono or interleaved tracks.
func Decode(ctx context.Context, s Spec) ([]float32, error) {
	source, err := Open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	return rest(ctx, source)
}

// rest reads what is left of a source.
func rest(ctx context.Context, source Source) (all []float32, err error) {
	block := make([]float32, SampleRate)
	for {
		n, err := source.Read(ctx, block)
		all = append(all, block[:n]...)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Spec is an input to open.
type Spec struct {
	// Input is "" (the default microphone, or the demo where there is none),
	// "mic", "mic:NAME" (a substring of the device's name, or its number), a
	// recorder such as "parec" or "parec:NAME", "speakers" or "speakers:NAME" (what
	// the machine plays), "demo" (the built-in conversation), "-" (standard input), or
	// the path of a WAV, FLAC or MP3 file.
	Input string
	// Second, unless "", is a second device. The two are two tracks on the clock of
	// the first, without the second's echo in the first.
	Second string
	// Channels are those that are taken; the demo has one, and so has each of two
	// devices.
	Channels Channels
	// Stdin is read for "-".
	Stdin io.Reader
}

// Open opens an input. ctx limits the opening only, which may wait for the first
// bytes of a pipe or for a device.
func Open(ctx context.Context, s Spec) (Source, error) {
	if s.Second != "" {
		return openPair(ctx, s.Input, s.Second)
	}
	switch {
	case s.Input == "":
		return openDefault(ctx, s.Channels, openMic)
	case s.Input == "demo":
		return openDemo(ctx, "")
	case IsDevice(s.Input):
		m, err := openDevice(ctx, s.Input, s.Channels)
		if err != nil {
			return nil, err
		}
		return m, nil
	case s.Input == "-":
		return openStdin(ctx, s.Stdin, s.Channels)
	default:
		source, err := openFile(ctx, s.Input, s.Channels)
		if errors.Is(err, audiofile.ErrMP3Rate) {
			return OpenRecording(ctx, s.Input, s.Channels, DecoderStall)
		}
		return source, err
	}
}

// openDevice opens an input that is a device.
func openDevice(ctx context.Context, input string, selected Channels) (*microphone, error) {
	system, name, _ := strings.Cut(input, ":")
	switch system {
	case "mic":
		return openMic(ctx, name, selected)
	case "speakers":
		return openMicWith(ctx, name, micConfig{Speakers, device.OpenMonitor, selected, stallAfter, elapsed})
	}
	return openMicWith(ctx, name, micConfig{Mic, device.FindRecorder(system).Open, selected, stallAfter, elapsed})
}

// IsDevice reports whether an input is a device, not a file or standard input.
func IsDevice(input string) bool {
	system, _, _ := strings.Cut(input, ":")
	return system == "mic" || system == "speakers" || device.FindRecorder(system) != nil
}

// FileName is the name of a file without its ending; one such as .hidden has none.
func FileName(path string) string {
	base := filepath.Base(path)
	return cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), base)
}

// RTTMName is the name of a file in RTTM: without its ending and without blanks, which
// separate the columns there.
func RTTMName(path string) string {
	base := strings.Join(strings.Fields(FileName(path)), "_")
	if base == "" || base == "." || base == string(filepath.Separator) {
		return "live"
	}
	return base
}
