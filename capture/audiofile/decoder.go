// Package audiofile decodes WAV, FLAC, MP3 and raw samples, and writes WAV. Begin
// with Open and OpenStream. Input is not trusted: what is damaged ends the audio
// with a notice, or gives an error with a hint.
package audiofile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"
)

// SampleRate is that of raw input and of a WAVWriter, in Hz.
const SampleRate = 16000

// Limits of the values in a header.
const (
	MinRate     = 1000
	MaxRate     = 384000
	MaxChannels = 256
)

// Decoder returns the samples of an input at its own rate and channels, nominally
// in -1..1.
type Decoder interface {
	Format() Format
	// Read fills dst, whose length is a multiple of the channels, with interleaved
	// samples of complete frames. io.EOF comes with n = 0.
	Read(dst []float32) (n int, err error)
}

// Format is the content of a header.
type Format struct {
	// Rate is in Hz.
	Rate, Channels int
	// Frames is the number of samples of one channel; -1 = unknown.
	Frames int64
	// Notice is one line for the user, known from the start; "" = none.
	Notice string
}

// Duration is the length of the audio; 0 = unknown.
func (f Format) Duration() time.Duration {
	if f.Frames < 0 || f.Rate <= 0 {
		return 0
	}
	return seconds(f.Frames, f.Rate)
}

// clock is the length of so many samples of one channel, for messages.
func (f Format) clock(frames int64) string {
	return fmt.Sprintf("%.1f s", seconds(frames, f.Rate).Seconds())
}

// truncated is the notice of an input with fewer samples than stated, longer of one
// with more.
func (f Format) truncated(stated, frames int64) string {
	return fmt.Sprintf("truncated: the header states %s, the file contains %s", f.clock(stated), f.clock(frames))
}

func (f Format) longer(stated, frames int64) string {
	return fmt.Sprintf("the header states %s, but the file contains %s; all of it is used", f.clock(stated), f.clock(frames))
}

// damaged is the notice of an input that cannot be decoded after so many samples.
func (f Format) damaged(frames int64, why error) string {
	rest := "the rest is"
	if f.Frames > frames {
		rest = "the remaining " + f.clock(f.Frames-frames) + " are"
	}
	return fmt.Sprintf("damaged after %s; %s skipped: %v", f.clock(frames), rest, why)
}

// silenced is the notice of an input with damage that lasts so many samples.
func (f Format) silenced(frames int64) string {
	return fmt.Sprintf("damaged; %.2f s in all are replaced by silence", seconds(frames, f.Rate).Seconds()) // a frame of MP3 has 0.03 s
}

// maxSeconds is what a Duration can hold, and more than any input has.
const maxSeconds = 1e9

func seconds(frames int64, rate int) time.Duration {
	return time.Duration(min(float64(frames)/float64(rate), maxSeconds) * float64(time.Second))
}

// Notices is a list of notices that arise while an input is read, safe for
// concurrent use.
type Notices struct {
	mu   sync.Mutex
	list []string
}

// Add appends a notice that is not there yet.
func (n *Notices) Add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.list, text) {
		n.list = append(n.list, text)
	}
}

// All returns a copy of the list.
func (n *Notices) All() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}

// fullScale is the factor that maps a signed integer of the given bits to -1..1.
func fullScale(bits int) float32 { return float32(math.Ldexp(1, 1-bits)) }

// ErrNoAudio reports a WAV file that is intact and has no samples.
var ErrNoAudio = errors.New("this WAV file contains no audio")

// ErrCutOff reports a file that has lost all of its samples.
var ErrCutOff = errors.New("ends before its audio begins")

// ErrMP3Rate reports an MP3 file of the one rate that go-mp3 has no tables for.
var ErrMP3Rate = errors.New("this MP3 file is MPEG-2.5 at 8000 Hz, which is not supported")

// isContext reports whether err is the end of a context.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// input is the reader of an input. Its errors, as of a disk, say nothing about what the input
// contains: they end the reading, and are no damage.
type input struct {
	io.Reader
	hint string // what to do about an error; "" = unknown
}

func (i input) Read(b []byte) (int, error) {
	n, err := i.Reader.Read(b)
	if err != nil && !isEnd(err) {
		err = &inputError{err, i.hint}
	}
	return n, err
}

// inputError is an error of an input, also the end of a context.
type inputError struct {
	error
	hint string
}

func (e *inputError) Unwrap() error { return e.error }
func (e *inputError) Hint() string  { return e.hint }

// ofInput reports whether err is one of the input, and not of what it contains.
func ofInput(err error) bool { return errors.As(err, new(*inputError)) }

// isEnd reports whether err is the end of the input.
func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
