package capture

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"hubbub/capture/device"
	"hubbub/protocol/recovered"
)

// Pace is how fast an input of known audio is delivered, as the command line spells it.
// It has no effect on a microphone, which delivers in real time.
type Pace string

const (
	// Realtime delivers every chunk when its last sample would have been
	// captured, counted from the first chunk. It is the default.
	Realtime Pace = "realtime"
	// Fast delivers as fast as chunks are received.
	Fast Pace = "fast"
)

// Stats are the counters and the state of a ChunkReader.
type Stats struct {
	Overflows int64         // times the device lost audio
	Position  time.Duration // capture clock of the newest sample
	Notices   []string      // those of the source, after its end
	// Device is the name of the source. It changes when another device takes its
	// place, which ends the outage at the same time.
	Device string
	// Open is the device of a source that is Switchable.
	Open device.Device
	// Source is the newest known Info.Source.
	Source string
	// Outage is set while the device, or one of two, delivers nothing and is being
	// reopened, and after the end if the input ended meanwhile.
	Outage *Outage
	// Gaps are the outages so far, with the one that lasts. The slice is shared:
	// read only.
	Gaps []Gap
	// Silence is set while the device Silent, one of two perhaps, delivers only silence.
	Silence Silence
	Silent  string
	// StandsIn names a device that does not come back, and in whose place another one
	// is used meanwhile.
	StandsIn string
	// Drift is 1 while a device delivers more audio than real time, -1 for less.
	Drift int
}

// ChunkReader reads a source and divides the audio into chunks, on the goroutine of the loop over Chunks. If that is too
// slow for a microphone, the device overflows, which Stats counts.
type ChunkReader struct {
	ctx    context.Context
	pace   Pace
	notice chan struct{} // see Changed

	// Of the loop.
	src     Source
	devices []*reopener // those of src: none, one, or two
	yield   func(Chunk) bool
	seq     int64  // number of the next chunk
	next    anchor // the chunk after the newest one of a device
	drift   drift  // of the device since it was opened
	outage  *Outage
	limit   <-chan time.Time // of an outage of all devices; nil = there is none
	gaps    []Gap
	start   time.Time // when the first sample was due, of a source that is paced

	opened *microphone      // the one device of src, as it was opened; nil = it is none, or two
	chosen chan *microphone // by the user, see Switch
	over   chan struct{}    // closed when none is received any more
	open   func(ctx context.Context, input string, selected Channels) (*microphone, error)

	mu    sync.Mutex // guards what follows
	stats Stats
	err   error
}

// NewChunkReader is a reader of src until the end of ctx. It opens a device again that is lost.
func NewChunkReader(ctx context.Context, src Source, pace Pace) *ChunkReader {
	r := &ChunkReader{ctx: ctx, src: src, pace: pace, notice: make(chan struct{}, 1),
		chosen: make(chan *microphone), over: make(chan struct{}), open: openDevice}
	switch s := src.(type) {
	case *microphone:
		d := newReopener(s)
		r.src, r.devices, r.opened = d, []*reopener{d}, s
		r.stats.Open = s.device
	case *pair:
		r.devices = []*reopener{s.first, s.second}
	}
	r.stats.Device = src.Info().Name
	return r
}

// errLoopEnded is the end of a loop that has left out chunks.
var errLoopEnded = errors.New("no more chunks are read")

// Chunks are those of the source, until it ends or fails, or the context ends. There is one loop over them, which closes
// the source at its end.
func (r *ChunkReader) Chunks() iter.Seq[Chunk] {
	return func(yield func(Chunk) bool) {
		r.yield = yield
		var err error
		defer func() {
			close(r.over)
			if errors.Is(err, io.EOF) || errors.Is(err, errLoopEnded) {
				err = nil
			}
			err = cmp.Or(err, r.src.Close())
			r.mu.Lock()
			defer r.mu.Unlock()
			r.err, r.stats.Notices = err, r.src.Notices()
		}()
		for err == nil {
			if err = r.exchangeDevice(); err == nil {
				err = r.readChunk()
			}
		}
	}
}

// Changed receives after more of Stats has changed than Overflows and Position.
func (r *ChunkReader) Changed() <-chan struct{} { return r.notice }

// Err returns, after the loop over Chunks, why it ended: nil = the input ended, or the loop itself.
func (r *ChunkReader) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Stats may be called at any time, from any goroutine.
func (r *ChunkReader) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// readChunk reads the next chunk and passes it to the loop, also an incomplete one before an error. While all devices are
// lost, it passes on the silence that is due.
func (r *ChunkReader) readChunk() error {
	if r.limit != nil {
		return r.waitForDevice()
	}
	tracks := r.src.Info().Tracks
	samples, valid := make([]float32, tracks*ChunkSamples), 0
	var failed error
	for valid < ChunkSamples && failed == nil {
		failed = recovered.Guard(func() error {
			n, err := r.src.Read(r.ctx, samples[tracks*valid:])
			valid += n / tracks
			return err
		})
	}
	lost := r.lost()
	switch {
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case r.seq == 0 && lost != nil: // it has delivered no chunk
		return lost
	case failed == nil && lost == nil && len(r.devices) > 0 && r.drift.add(r.devices[0].now()):
		return nil
	}
	if valid > 0 {
		if err := r.waitUntil(r.position(valid)); err != nil {
			return err
		}
		if !r.yield(r.chunk(samples, valid)) {
			return errLoopEnded
		}
	}
	r.noteOutage(r.seq - 1)
	if lost == nil {
		r.next = anchor{r.seq, 0}
		for _, d := range r.devices {
			_, at := d.arrival()
			r.next.at = max(r.next.at, at)
		}
	}
	return failed
}

// position is the capture clock after so many samples of the next chunk.
func (r *ChunkReader) position(samples int) time.Duration {
	return time.Duration(r.seq)*ChunkDuration + time.Duration(samples)*time.Second/SampleRate
}

// waitUntil waits until an input that is no device would have captured the audio up to a position, unless the pace is Fast.
func (r *ChunkReader) waitUntil(position time.Duration) error {
	if r.pace == Fast || r.src.Info().Kind.Live() {
		return nil
	}
	if r.start.IsZero() {
		r.start = time.Now()
	}
	// Counted from the start: a wait that is too long shortens the next one.
	select {
	case <-time.After(time.Until(r.start.Add(position))):
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// chunk makes the next chunk of samples interleaved by track.
func (r *ChunkReader) chunk(samples []float32, valid int) Chunk {
	c := Chunk{Seq: r.seq, Samples: samples, Tracks: samples, Valid: valid}
	if n := len(samples) / ChunkSamples; n > 1 {
		c.Tracks, c.Samples = separate(samples, n)
	}
	c.Level = measure(c.Samples[:valid])
	r.publish(r.position(valid))
	r.seq++
	return c
}

// publish sets what Stats returns: the newest chunk, which ends at a position, and the state of
// the source now.
func (r *ChunkReader) publish(position time.Duration) {
	info, was := r.src.Info(), r.stats // which nothing else changes
	st := Stats{Position: position, Device: info.Name, Source: cmp.Or(info.Source, was.Source),
		Outage: r.outage, Gaps: slices.Clip(r.gaps), Drift: r.drift.state()}
	if o := r.outage; o != nil {
		st.Device = was.Device
		if position > o.Since {
			st.Gaps = append(st.Gaps, Gap{o.Since.Seconds(), position.Seconds()})
		}
	}
	if r.Switchable() {
		st.Open = r.devices[0].device
	}
	for _, d := range r.devices { // of two, the first one
		if st.Silence == NotSilent {
			st.Silent, st.Silence = d.silent()
		}
		st.StandsIn = cmp.Or(st.StandsIn, d.standsIn())
		st.Overflows += d.overflows()
	}
	r.mu.Lock()
	r.stats = st
	r.mu.Unlock()
	if st.Device != was.Device || st.Source != was.Source || st.Outage != was.Outage || len(st.Gaps) != len(was.Gaps) ||
		st.Silence != was.Silence || st.StandsIn != was.StandsIn || st.Drift != was.Drift {
		select {
		case r.notice <- struct{}{}:
		default:
		}
	}
}
