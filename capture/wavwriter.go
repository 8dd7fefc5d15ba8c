package capture

import (
	"encoding/binary"
	"math"
	"os"
	"sync"
	"time"
)

// syncEvery is how old audio may get before it is safe on the disk.
const syncEvery = 900 * time.Millisecond

const wavHeaderSize = 44

// WAVWriter writes 16 kHz mono as 16-bit PCM. At most a second after each Write
// the file is whole: audio on the disk, sizes in the header true, so that a
// program that is killed leaves a readable recording. It may be used by
// several goroutines.
type WAVWriter struct {
	mu     sync.Mutex
	f      *os.File
	buf    []byte // audio not yet in the file
	length int64  // bytes of audio in the file
	timer  *time.Timer
	armed  bool
	closed bool
	err    error // the first one, kept
}

// CreateWAV makes the file, or empties it, and writes a header.
func CreateWAV(path string) (*WAVWriter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fail("Choose a place that you may write to.", "cannot record: %w", err)
	}
	w := &WAVWriter{f: f, buf: make([]byte, 0, 64<<10)}
	if _, err := f.Write(wavHeader(0)); err != nil {
		_ = f.Close()
		return nil, fail("See whether the disk is full.", "cannot record: %w", err)
	}
	return w, nil
}

// wavHeader is the header of a file with so many bytes of audio.
func wavHeader(length int64) []byte {
	// Beyond 4 GiB (37 hours) the sizes stay at their largest value, which
	// readers take for "until the end".
	clip := func(n int64) uint32 { return uint32(min(n, math.MaxUint32)) }
	b := make([]byte, 0, wavHeaderSize)
	le := binary.LittleEndian
	b = append(b, "RIFF"...)
	b = le.AppendUint32(b, clip(length+wavHeaderSize-8))
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	b = le.AppendUint16(b, tagPCM)
	b = le.AppendUint16(b, 1)
	b = le.AppendUint32(b, SampleRate)
	b = le.AppendUint32(b, 2*SampleRate)
	b = le.AppendUint16(b, 2)
	b = le.AppendUint16(b, 16)
	b = append(b, "data"...)
	return le.AppendUint32(b, clip(length))
}

// Write appends samples; beyond -1..1 they are clipped, what is no number
// becomes 0. An error of an earlier, delayed write is told here or by Close.
func (w *WAVWriter) Write(samples []float32) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return os.ErrClosed
	}
	for _, x := range samples {
		if len(w.buf)+2 > cap(w.buf) {
			w.flush()
		}
		w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(pcm16(x)))
	}
	if !w.armed && w.err == nil && len(samples) > 0 {
		w.armed = true
		w.timer = time.AfterFunc(syncEvery, w.tick)
	}
	return w.err
}

func pcm16(x float32) int16 {
	if x != x {
		return 0
	}
	return int16(max(math.MinInt16, min(math.MaxInt16, math.RoundToEven(float64(x)*32768))))
}

// tick runs after the first Write since the last one.
func (w *WAVWriter) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = false
	if !w.closed {
		w.save()
	}
}

// flush puts the buffer into the file.
func (w *WAVWriter) flush() {
	if w.err == nil {
		var n int
		n, w.err = w.f.Write(w.buf)
		w.length += int64(n)
	}
	w.buf = w.buf[:0]
}

// save makes the file whole: first the audio, then the header that promises it.
func (w *WAVWriter) save() {
	w.flush()
	if w.err == nil {
		_, w.err = w.f.WriteAt(wavHeader(w.length), 0)
	}
	if w.err == nil {
		w.err = w.f.Sync()
	}
}

// Close makes the file whole and closes it. Further calls do nothing.
func (w *WAVWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.save()
	if err := w.f.Close(); w.err == nil {
		w.err = err
	}
	return w.err
}
