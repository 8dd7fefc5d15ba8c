// Package words gets the words of turns from a speech recogniser that the user
// already has: an HTTP endpoint in the form of OpenAI's, or a process per turn.
//
// Where to look: endpoint.go and process.go are the recognisers, queue.go passes
// them the finished turns of a session, recording.go those of a recording, timed.go
// finds when words were said, audio.go keeps the audio for that and cuts it.
package words

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"
	"golang.org/x/sync/semaphore"

	"hubbub/protocol"
)

// Recogniser turns speech into text. It is called from several goroutines.
type Recogniser interface {
	// Recognise returns the text of a WAV file, 16 kHz, mono, 16 bits, and, if timed,
	// its words in order; nil = their times are not known. Its error is an *Error, or
	// that of ctx.
	Recognise(ctx context.Context, wav []byte, timed bool) (text string, words []Word, err error)
}

// Word is a word and when it was said, in seconds from the beginning of the audio.
type Word struct {
	Text       string
	Start, End float64
}

// Error is a failure of a recogniser.
type Error struct {
	what, hint string
	retryAfter time.Duration // at least that long until the next attempt; 0 = unknown
	temporary  bool          // the same request may succeed later
	badRequest bool          // the endpoint does not accept the request as it is
}

func (e *Error) Error() string { return e.what }

// Hint is what to do about it.
func (e *Error) Hint() string { return e.hint }

// maxText bounds what a recogniser may return, in bytes, and the words of a turn, in
// characters.
const maxText = 64 << 10

// Timeouts of a recogniser.
const (
	// LiveTimeout is for a live session, whose words come too late after that.
	LiveTimeout = 30 * time.Second
	// RecordingTimeout is for recordings, which can wait for a recogniser that needs eight times the length of a part.
	RecordingTimeout = 2 * time.Minute
)

// New returns the recogniser of a specification: the URL of an endpoint, or the
// command line of a process, which is split into words as a shell does, and run
// without one. model and key are for an endpoint. timeout bounds a request to it, response
// included, or a process.
func New(spec, model, key string, timeout time.Duration) (Recogniser, error) {
	if scheme, _, ok := strings.Cut(spec, "://"); ok && !strings.ContainsAny(scheme, " \t'\"") {
		u, err := url.Parse(spec)
		if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || !protocol.ValidPort(u) {
			return nil, &Error{what: fmt.Sprintf("%s is not the address of a recogniser", protocol.ShownAddress(spec)), hint: "Give http://HOST:PORT, or the command of a process."}
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/v1/audio/transcriptions"
		}
		return newEndpoint(u, model, key, timeout), nil
	}
	args, err := splitCommand(spec, runtime.GOOS == "windows")
	if err == nil && len(args) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, &Error{what: fmt.Sprintf("%q is not the command of a recogniser: %v", spec, err), hint: "Check the quotes, or give http://HOST:PORT."}
	}
	return newProcess(args, timeout)
}

// splitCommand splits a command line into words as a shell does. Where \ separates folders it means
// nothing else.
func splitCommand(line string, separates bool) ([]string, error) {
	if separates {
		line = strings.ReplaceAll(line, `\`, `\\`)
	}
	return shellquote.Split(line)
}

// clean is the text of a recogniser on one line, without control characters.
func clean(text string) string { return protocol.Clean(text, maxText) }

// Limit is a recogniser that works on at most so many turns at the same time.
func Limit(r Recogniser, atOnce int) Recogniser {
	return &limited{r, semaphore.NewWeighted(int64(atOnce))}
}

type limited struct {
	Recogniser
	slots *semaphore.Weighted
}

func (l *limited) Recognise(ctx context.Context, wav []byte, timed bool) (string, []Word, error) {
	if err := l.slots.Acquire(ctx, 1); err != nil {
		return "", nil, err
	}
	defer l.slots.Release(1)
	return l.Recogniser.Recognise(ctx, wav, timed)
}
