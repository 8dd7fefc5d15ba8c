package capture

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A device may stop delivering audio and come back: its source is suspended, the
// sound server restarts, a Bluetooth profile changes, the program is stopped by
// ctrl+z, the machine sleeps. The reader then continues with silence, so that its
// clock keeps up with the wall clock, while the device is reopened.

const (
	// OutageLimit is how long a device may deliver nothing before the input ends.
	OutageLimit = 2 * time.Minute
	// defaultAfter is how long only the same device is tried, not the default one.
	defaultAfter = 5 * time.Second
	// reopenInterval is the time between two attempts.
	reopenInterval = time.Second
	// releaseWait is how long the next attempt waits for a device that is blocked
	// in the native library: it ends by itself when the device comes back, and
	// until then the library's list of devices cannot change.
	releaseWait = 10 * time.Second

	// maxFill is the longest silence that is delivered at once. Of a longer one
	// only the first fillPart is delivered, which ends the turns before it; the
	// rest is a gap in Chunk.Seq. A service accepts only a few seconds of audio
	// ahead of real time.
	maxFill  = 20 // chunks
	fillPart = 10 // chunks

	// maxGaps limits the gaps that are remembered.
	maxGaps = 1 << 14
)

var processStart = time.Now()

// Gap is a stretch of the capture clock in which a device delivered nothing, in seconds.
type Gap struct{ Start, End float64 }

// Outage is a device that delivers nothing and is being reopened.
type Outage struct {
	Since  time.Duration // on the capture clock
	Reason string        // what its driver or its recorder said; "" = nothing
	// Device names one of two devices, while the other one delivers audio: that has no
	// limit. "" = all of the input.
	Device string
}

// anchor maps the elapsed time to chunks: chunk seq begins at the time at.
type anchor struct {
	seq int64
	at  time.Duration
}

// due is the chunk that begins at the time now.
func (a anchor) due(now time.Duration) int64 { return a.seq + int64((now-a.at)/ChunkDuration) }

// lost is why no device delivers audio; nil = one does, or the source is no device.
func (r *ChunkReader) lost() (reason error) {
	for _, d := range r.devices {
		if d.lost == nil {
			return nil
		}
		reason = cmp.Or(reason, d.lost)
	}
	return reason
}

// waitForDevice waits for a moment in an outage of all devices, and delivers the silence that is due.
func (r *ChunkReader) waitForDevice() error {
	select {
	case <-r.limit:
		return fmt.Errorf("%w; it did not come back within %.0f minutes", r.lost(), OutageLimit.Minutes())
	case <-time.After(ChunkDuration / 10):
		// A chunk later than due: the first audio of the reopened device is up to 100 ms old.
		return r.fill(r.next.due(r.devices[0].now()) - 1)
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// fill delivers silence from the next chunk up to chunk to.
func (r *ChunkReader) fill(to int64) error {
	skip := int64(0)
	if missing := to - r.seq; missing > maxFill {
		skip = missing - fillPart
	}
	for r.seq < to-skip {
		if !r.yield(r.chunk(make([]float32, r.src.Info().Tracks*ChunkSamples), ChunkSamples)) {
			return errLoopEnded
		}
	}
	r.seq += skip
	return nil
}

// noteOutage notes what is lost since a chunk: nothing, one of two devices, or all of the input.
func (r *ChunkReader) noteOutage(since int64) {
	name, reason := "", r.lost()
	if i := slices.IndexFunc(r.devices, func(d *reopener) bool { return d.lost != nil }); i >= 0 && reason == nil {
		name, reason = r.devices[i].Info().Name, r.devices[i].lost
	}
	switch {
	case r.outage == nil && reason == nil, r.outage != nil && reason != nil && name == r.outage.Device:
		return
	case r.outage != nil:
		r.endOutage(since)
	}
	if reason != nil {
		r.outage = &Outage{Since: time.Duration(since) * ChunkDuration, Device: name}
		if name == "" {
			r.limit = time.After(OutageLimit)
		}
		if failed, ok := errors.AsType[failure](reason); ok {
			r.outage.Reason = failed.Error()
		}
	}
	r.publish(r.stats.Position)
}

// endOutage ends the outage, if there is one, with chunk end, and remembers its gap.
func (r *ChunkReader) endOutage(end int64) {
	if r.outage != nil {
		r.addGap(int64(r.outage.Since/ChunkDuration), end)
		r.outage, r.limit = nil, nil
	}
}

// addGap remembers the gap from chunk began up to chunk end.
func (r *ChunkReader) addGap(began, end int64) {
	if len(r.gaps) < maxGaps && end > began {
		r.gaps = append(r.gaps, Gap{chunkSeconds(began), chunkSeconds(end)})
	}
}

func chunkSeconds(seq int64) float64 { return float64(seq*ChunkSamples) / SampleRate }
