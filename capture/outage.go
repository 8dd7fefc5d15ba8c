package capture

import (
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

// bridge delivers silence from the next chunk on until its device delivers audio
// again, for OutageLimit at most. It returns lost if that does not happen.
func (r *ChunkReader) bridge(lost error) error {
	r.endOutage(r.seq) // of one of two devices
	r.beginOutage(r.seq, lost, "")
	first, second := r.devices[0], r.devices[len(r.devices)-1] // one device is both
	if first.lost == nil {                                     // those of a pair are reopened already
		first.lose(lost)
	}
	tick := time.NewTicker(ChunkDuration)
	defer tick.Stop()
	limit := time.After(OutageLimit)
	for {
		select {
		case m := <-first.found:
			return r.replace(first, m)
		case m := <-second.found:
			return r.replace(second, m)
		case m := <-r.chosen:
			return r.choose(m)
		case <-tick.C:
			// A chunk later than due: the first audio of the reopened device is up to
			// 100 ms old.
			if err := r.fill(r.next.due(first.now()) - 1); err != nil {
				return err
			}
		case <-limit:
			return fmt.Errorf("%w; it did not come back within %.0f minutes", lost, OutageLimit.Minutes())
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
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

// beginOutage begins an outage with a chunk: of one of two devices, or "" = of all of the input.
func (r *ChunkReader) beginOutage(since int64, lost error, one string) {
	r.outage = &Outage{Since: time.Duration(since) * ChunkDuration, Device: one}
	if failed, ok := errors.AsType[failure](lost); ok {
		r.outage.Reason = failed.Error()
	}
	r.publish(r.stats.Position)
}

// endOutage ends the outage, if there is one, with chunk end, and remembers its gap.
func (r *ChunkReader) endOutage(end int64) {
	if r.outage != nil {
		r.addGap(int64(r.outage.Since/ChunkDuration), end)
		r.outage = nil
	}
}

// addGap remembers the gap from chunk began up to chunk end.
func (r *ChunkReader) addGap(began, end int64) {
	if len(r.gaps) < maxGaps && end > began {
		r.gaps = append(r.gaps, Gap{chunkSeconds(began), chunkSeconds(end)})
	}
}

// notePartial notes that one of two devices is lost, or is back, since a chunk.
func (r *ChunkReader) notePartial(since int64) {
	i := slices.IndexFunc(r.devices, func(d *reopener) bool { return d.lost != nil })
	if r.outage != nil && (i < 0 || r.devices[i].Info().Name != r.outage.Device) {
		r.endOutage(since)
		r.publish(r.stats.Position)
	}
	if i >= 0 && r.outage == nil {
		r.beginOutage(since, r.devices[i].lost, r.devices[i].Info().Name)
	}
}

func chunkSeconds(seq int64) float64 { return float64(seq*ChunkSamples) / SampleRate }
