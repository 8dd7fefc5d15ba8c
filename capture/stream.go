package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"
)

// DefaultQueue is how many chunks wait for the taker when nothing else is said: 5 s.
const DefaultQueue = 50

// StreamOptions say how a source is cut into chunks.
type StreamOptions struct {
	Pace Pace
	// Queue bounds the chunks that wait for the taker; 0 = DefaultQueue.
	Queue int
	// Tap is called with every chunk, in order, before it is queued: also with
	// those that the queue will drop. It must not change the samples.
	Tap func(Chunk)
	// Clock is for tests; nil = the wall clock.
	Clock Clock
}

// Stats is one moment of a Stream.
type Stats struct {
	Captured  int64         // chunks read from the source
	Dropped   int64         // chunks that a full queue dropped
	Overflows int64         // times the device lost audio
	Heard     time.Duration // stream clock of the newest sample
	Level     Level         // of the newest chunk
	Notices   []string      // found after opening; Info.Notice is not among them
}

// Stream reads a source to its end, in a goroutine of its own, and cuts it into
// chunks. A microphone cannot wait: when the queue is full the oldest chunk is
// dropped and counted, which leaves a gap in Seq. Every other source waits.
type Stream struct {
	src    Source
	o      StreamOptions
	chunks chan Chunk

	mu    sync.Mutex // guards what follows
	stats Stats
	err   error
}

// Start reads src until it ends, fails, or ctx ends, and closes it then.
func Start(ctx context.Context, src Source, o StreamOptions) *Stream {
	if o.Queue <= 0 {
		o.Queue = DefaultQueue
	}
	if o.Clock == nil {
		o.Clock = wallClock{}
	}
	s := &Stream{src: src, o: o, chunks: make(chan Chunk, o.Queue)}
	go s.run(ctx)
	return s
}

// Chunks is closed at the end of the input, on an error, and when the context
// of Start ends; what is queued by then can still be taken.
func (s *Stream) Chunks() <-chan Chunk { return s.chunks }

// Queued is how many chunks wait for their taker.
func (s *Stream) Queued() int { return len(s.chunks) }

// Err says, once Chunks is closed, why: nil = the input ended.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Stats may be asked at any time, from any goroutine.
func (s *Stream) Stats() Stats {
	s.mu.Lock()
	st := s.stats
	s.mu.Unlock()
	if o, ok := s.src.(overflower); ok {
		st.Overflows = o.overflows()
	}
	if n, ok := s.src.(noticer); ok {
		st.Notices = n.notices()
	}
	return st
}

func (s *Stream) run(ctx context.Context) {
	defer close(s.chunks)
	err := s.pump(ctx)
	if closeErr := s.src.Close(); err == nil {
		err = closeErr
	}
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
}

// defect is a panic that was caught.
type defect struct {
	error
	stack []byte
}

func (d *defect) Unwrap() error { return d.error }

// Stack is where it happened.
func (d *defect) Stack() []byte { return d.stack }

// pump is the stream's whole life; a panic in a source or a tap ends this
// stream only.
func (s *Stream) pump(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &defect{fail("This is a defect of the program.", "reading the input failed: %v", r), debug.Stack()}
		}
	}()
	mic := s.src.Info().Kind == Mic
	pace := pacer{clock: s.o.Clock}
	for seq := int64(0); ; seq++ {
		samples, valid, readErr := s.readChunk(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if valid > 0 {
			heard := time.Duration(seq)*ChunkDuration + time.Duration(valid)*time.Second/SampleRate
			if !mic && s.o.Pace == Realtime {
				if err := pace.wait(ctx, heard); err != nil {
					return err
				}
			}
			c := Chunk{Seq: seq, Samples: samples, Valid: valid, Level: measure(samples[:valid]), Captured: s.o.Clock.Now()}
			if err := s.deliver(ctx, c, heard, mic); err != nil {
				return err
			}
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

// readChunk fills one chunk; less than a full one only together with an error.
func (s *Stream) readChunk(ctx context.Context) (samples []float32, valid int, err error) {
	samples = make([]float32, ChunkSamples)
	for empty := 0; valid < ChunkSamples; {
		n, err := s.src.Read(ctx, samples[valid:])
		valid += n
		if err != nil {
			clear(samples[valid:])
			return samples, valid, err
		}
		if n > 0 {
			empty = 0
		} else if empty++; empty > 100 {
			return samples, valid, fmt.Errorf("the input gives nothing: %w", io.ErrNoProgress)
		}
	}
	return samples, valid, nil
}

// deliver hands a chunk to the tap, then to the queue.
func (s *Stream) deliver(ctx context.Context, c Chunk, heard time.Duration, mic bool) error {
	s.mu.Lock()
	s.stats.Captured++
	s.stats.Heard = heard
	s.stats.Level = c.Level
	s.mu.Unlock()
	if s.o.Tap != nil {
		s.o.Tap(c)
	}
	if !mic {
		select {
		case s.chunks <- c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		select {
		case s.chunks <- c:
			return nil
		default:
		}
		// Nobody but us sends: after this there is room, unless the taker was
		// faster, and then there is as well.
		select {
		case <-s.chunks:
			s.mu.Lock()
			s.stats.Dropped++
			s.mu.Unlock()
		default:
		}
	}
}
