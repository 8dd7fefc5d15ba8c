package capture

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Kind says where audio comes from.
type Kind string

// The four kinds of source.
const (
	Mic   Kind = "mic"
	File  Kind = "file"
	Stdin Kind = "stdin"
	Demo  Kind = "demo"
)

// Info describes a source as it was opened.
type Info struct {
	Kind Kind
	// Name is for people: a device's name, a file's path.
	Name string
	// Base is the name for RTTM: a file's base name without its ending, else "live".
	Base string
	// Rate (Hz) and Channels are those of the origin, before conversion.
	Rate, Channels int
	// Duration is the length of the input; 0 = unknown or endless.
	Duration time.Duration
	// Notice is what the user should know from the start, one line; "" = nothing.
	// What turns out later is in Stats.Notices.
	Notice string
}

// Source gives audio as 16 kHz mono float32, whatever it was at its origin.
// It is for one reader at a time.
type Source interface {
	Info() Info
	// Read fills dst with up to len(dst) samples and says how many. It blocks
	// until there is at least one, the input ends (io.EOF, with n = 0), or ctx
	// ends. After any error, ctx's included, the source is over.
	Read(ctx context.Context, dst []float32) (int, error)
	// Close frees what the source holds. It may be called once a Read has
	// returned, any number of times.
	Close() error
}

// noticer is a source that may find out, while it is read, what the user
// should know: a file cut short, samples that are no numbers.
type noticer interface{ notices() []string }

// overflower is a source that counts the audio losses of its device.
type overflower interface{ overflows() int64 }

// Spec says what to open.
type Spec struct {
	// Input is "" (the default microphone, or the demo where there is none),
	// "mic", "mic:NAME" (a part of the device's name, or its number), "-"
	// (standard input), or the path of a WAV, FLAC or MP3 file.
	Input string
	// Stdin is read for "-"; nil = os.Stdin.
	Stdin io.Reader
}

// Open opens what s names. ctx bounds the opening only, which may have to wait
// for the first bytes of a pipe or for a device.
func Open(ctx context.Context, s Spec) (Source, error) {
	switch {
	case s.Input == "":
		return openDefault(ctx, openMic)
	case s.Input == "mic":
		return openMic(ctx, "")
	case strings.HasPrefix(s.Input, "mic:"):
		return openMic(ctx, strings.TrimPrefix(s.Input, "mic:"))
	case s.Input == "-":
		in := s.Stdin
		if in == nil {
			in = os.Stdin
		}
		return openStdin(ctx, in)
	default:
		return openFile(ctx, s.Input)
	}
}

// baseName is the RTTM name of a path: no folders, no ending, no blanks, which
// would break the line into other columns.
func baseName(path string) string {
	base := filepath.Base(path)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	base = strings.Join(strings.Fields(base), "_")
	if base == "" || base == "." || base == string(filepath.Separator) {
		return "live"
	}
	return base
}
