package stream

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/localserver/store"
	"hubbub/protocol/recovered"
)

// queuedAudio is how many chunks of a stream's audio wait for the store, half a
// minute. Beyond it the recording is abandoned, because a gap would shift
// everything after it.
const queuedAudio = 300

var errAudioTooLarge = errors.New("the audio is larger than media may be")

// AudioTarget is where the audio of a stream is kept.
type AudioTarget struct {
	Account  string
	Name     string // of the object
	MaxBytes int64
}

// audioWriter writes the audio of one stream to the media store while it arrives,
// as WAV with 16 bits. All methods may be called on nil, which records nothing.
type audioWriter struct {
	store Store
	to    AudioTarget
	now   func() time.Time
	log   *slog.Logger
	queue chan []byte
	full  bool // the queue was full once; used by the worker only
	keep  bool // the recording is to be kept; set before queue is closed
	done  chan struct{}
}

func startAudioWriter(s Store, to AudioTarget, now func() time.Time, log *slog.Logger) *audioWriter {
	a := &audioWriter{store: s, to: to, now: now, log: log, queue: make(chan []byte, queuedAudio), done: make(chan struct{})}
	go a.run()
	return a
}

func (a *audioWriter) run() {
	defer close(a.done)
	// A recording is finished also while the server stops.
	ctx, cancel := context.WithTimeout(context.Background(), store.MediaWriteTime)
	defer cancel()
	if err := recovered.Guard(func() error { return a.write(ctx) }); err != nil {
		a.log.Error("the audio of a stream could not be stored", "error", err)
	}
	for range a.queue { // so that the worker never waits
	}
}

// write moves the audio to the store until the queue is closed.
func (a *audioWriter) write(ctx context.Context) error {
	w, err := a.store.CreateMedia(ctx, a.to.Account, a.to.Name, a.now)
	if err != nil {
		return err
	}
	defer w.Abort()
	size := int64(audiofile.WAVHeaderBytes)
	for pcm := range a.queue {
		if size += int64(len(pcm)); size > a.to.MaxBytes {
			return errAudioTooLarge
		}
		if _, err := w.Write(pcm); err != nil {
			return err
		}
	}
	if !a.keep {
		return nil
	}
	if _, err = w.Commit(audiofile.WAVHeader(size - audiofile.WAVHeaderBytes)); err == nil {
		a.log.Info("audio stored")
	}
	return err
}

// add takes a chunk. It never waits.
func (a *audioWriter) add(samples []float32) {
	if a == nil || a.full {
		return
	}
	select {
	case a.queue <- audiofile.AppendPCM16(nil, samples):
	default:
		a.full = true
		a.log.Error("the audio of a stream is not stored: the store is too slow for it")
	}
}

// finish ends the recording and says whether it is to be kept. It waits until
// it is stored, or ctx ends.
func (a *audioWriter) finish(ctx context.Context, keep bool) {
	if a == nil {
		return
	}
	a.keep = keep && !a.full
	close(a.queue)
	waitFor(ctx, a.done)
}

// wait waits until the goroutine of run has ended. Each step of its work
// has its own deadline.
func (a *audioWriter) wait() {
	if a != nil {
		<-a.done
	}
}
