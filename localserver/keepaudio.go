package localserver

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

const (
	// queuedAudio is how many chunks of a stream's audio wait for the store,
	// half a minute; with more the audio is given up: a hole in it would shift
	// everything behind.
	queuedAudio = 300
	// waveHead is the length of the head of a WAV file, in bytes.
	waveHead = 44
)

// audioKeeper writes the audio of one stream to the media while it comes, as
// WAV with 16 bits. All methods may be called on nil, which keeps nothing.
type audioKeeper struct {
	log   *slog.Logger
	queue chan []byte
	full  bool // the queue was; only the worker knows
	keep  bool // what came is to be kept; set before the queue is closed
	done  chan struct{}
}

// keepAudio begins to keep a stream's audio.
func (s *Server) keepAudio(account, id string, log *slog.Logger) *audioKeeper {
	k := &audioKeeper{log: log, queue: make(chan []byte, queuedAudio), done: make(chan struct{})}
	go func() {
		defer close(k.done)
		// Also what is written while the server stops gets its moment.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), store.MediaWriteTime)
		defer cancel()
		var kept bool
		var err error
		broken := guarded(func() { kept, err = k.write(ctx, s, account, resultPrefix+id+"/"+keptAudio) })
		if err = errors.Join(err, broken); err != nil {
			log.Error("the audio of a stream could not be kept", "error", err)
		}
		for range k.queue { // whatever became of it, the worker never waits
		}
		if kept {
			log.Info("audio kept")
		}
	}()
	return k
}

// write moves the audio into the store until the queue is closed.
func (k *audioKeeper) write(ctx context.Context, s *Server, account, name string) (kept bool, err error) {
	into, err := s.media.CreateMedia(ctx, account, name, s.now)
	if err != nil {
		return false, err
	}
	defer into.Abort()
	size := int64(waveHead)
	for pcm := range k.queue {
		if size += int64(len(pcm)); size > s.options.MaxMedia {
			return false, errTooLarge
		}
		if _, err := into.Write(pcm); err != nil {
			return false, err
		}
	}
	if !k.keep {
		return false, nil
	}
	_, err = into.Commit(waveHeader(size - waveHead))
	return err == nil, err
}

// add takes a chunk. It never waits.
func (k *audioKeeper) add(samples []float32) {
	if k == nil || k.full {
		return
	}
	pcm := make([]byte, 0, 2*len(samples))
	for _, x := range samples {
		v := math.Round(float64(x) * 32768)
		pcm = binary.LittleEndian.AppendUint16(pcm, uint16(int16(max(math.MinInt16, min(math.MaxInt16, v)))))
	}
	select {
	case k.queue <- pcm:
	default:
		k.full = true
		k.log.Error("the audio of a stream is not kept: the store is too slow for it")
	}
}

// finish says that there is no more, and whether what there was is to be kept.
// It waits until it is, or ctx ends.
func (k *audioKeeper) finish(ctx context.Context, keep bool) {
	if k == nil {
		return
	}
	k.keep = keep && !k.full
	close(k.queue)
	select {
	case <-k.done:
	case <-ctx.Done():
	}
}

// wait waits until nothing of it is left running. Each step of the writing has
// its own deadline.
func (k *audioKeeper) wait() {
	if k != nil {
		<-k.done
	}
}

// waveHeader is the head of a WAV file: PCM with 16 bits, 16 kHz, mono.
func waveHeader(bytes int64) []byte {
	const rate = protocol.SampleRate
	length := uint32(min(bytes, math.MaxUint32-waveHead)) // beyond 37 hours it says so much
	h := append(make([]byte, 0, waveHead), "RIFF"...)
	h = binary.LittleEndian.AppendUint32(h, length+waveHead-8)
	h = append(h, "WAVEfmt "...)
	for _, v := range []uint32{16, 1 | 1<<16, rate, 2 * rate, 2 | 16<<16} { // format 1, channels 1; block 2, bits 16
		h = binary.LittleEndian.AppendUint32(h, v)
	}
	h = append(h, "data"...)
	return binary.LittleEndian.AppendUint32(h, length)
}
