package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

// queuedAudio is how many chunks of a stream's audio wait for the store, half a
// minute. Beyond it the recording is abandoned, because a gap would shift
// everything after it.
const queuedAudio = 300

var errAudioTooLarge = errors.New("the audio is larger than media may be")

// AudioTarget is where the audio of a stream is kept.
type AudioTarget struct {
	Media    store.Media
	Account  string
	Name     string // of the object
	MaxBytes int64
}

// audioWriter writes the audio of one stream to the media store while it arrives,
// as WAV with 16 bits. All methods may be called on nil, which records nothing.
type audioWriter struct {
	to    AudioTarget
	now   func() time.Time
	log   *slog.Logger
	queue chan []byte
	full  bool // the queue was full once; used by the worker only
	keep  bool // the recording is to be kept; set before queue is closed
	done  chan struct{}
}

func startAudioWriter(to AudioTarget, now func() time.Time, log *slog.Logger) *audioWriter {
	r := &audioWriter{to: to, now: now, log: log, queue: make(chan []byte, queuedAudio), done: make(chan struct{})}
	go r.run()
	return r
}

func (r *audioWriter) run() {
	defer close(r.done)
	// A recording is finished also while the server stops.
	ctx, cancel := context.WithTimeout(context.Background(), store.MediaWriteTime)
	defer cancel()
	if err := Guard(func() error { return r.write(ctx) }); err != nil {
		r.log.Error("the audio of a stream could not be stored", "error", err)
	}
	for range r.queue { // so that the worker never waits
	}
}

// write moves the audio to the store until the queue is closed.
func (r *audioWriter) write(ctx context.Context) error {
	w, err := r.to.Media.CreateMedia(ctx, r.to.Account, r.to.Name, r.now)
	if err != nil {
		return err
	}
	defer w.Abort()
	size := int64(protocol.WAVHeaderBytes)
	for pcm := range r.queue {
		if size += int64(len(pcm)); size > r.to.MaxBytes {
			return errAudioTooLarge
		}
		if _, err := w.Write(pcm); err != nil {
			return err
		}
	}
	if !r.keep {
		return nil
	}
	if _, err = w.Commit(protocol.WAVHeader(size - protocol.WAVHeaderBytes)); err == nil {
		r.log.Info("audio stored")
	}
	return err
}

// add takes a chunk. It never waits.
func (r *audioWriter) add(samples []float32) {
	if r == nil || r.full {
		return
	}
	pcm := make([]byte, 0, 2*len(samples))
	for _, x := range samples {
		v := math.Round(float64(x) * 32768)
		pcm = binary.LittleEndian.AppendUint16(pcm, uint16(int16(max(math.MinInt16, min(math.MaxInt16, v)))))
	}
	select {
	case r.queue <- pcm:
	default:
		r.full = true
		r.log.Error("the audio of a stream is not stored: the store is too slow for it")
	}
}

// finish ends the recording and says whether it is to be kept. It waits until
// it is stored, or ctx ends.
func (r *audioWriter) finish(ctx context.Context, keep bool) {
	if r == nil {
		return
	}
	r.keep = keep && !r.full
	close(r.queue)
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

// wait waits until the goroutine of run has ended. Each step of its work
// has its own deadline.
func (r *audioWriter) wait() {
	if r != nil {
		<-r.done
	}
}
