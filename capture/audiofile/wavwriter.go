package audiofile

import (
	"cmp"
	"encoding/binary"
	"io"
	"os"
	"sync"
	"time"
)

// syncEvery is the maximum age of audio that is not yet synced to the disk.
const syncEvery = 900 * time.Millisecond

// WAVWriter writes 16 kHz mono as 16-bit PCM. At most a second after each Write
// the audio is on the disk and the sizes in the header are correct, so that a
// killed program leaves a readable recording. It may be used by several
// goroutines.
type WAVWriter struct {
	mu     sync.Mutex
	f      *os.File
	buf    []byte      // audio not yet in the file
	length int64       // bytes of audio in the file
	timer  *time.Timer // of the next tick; nil = none is due
	closed bool
	err    error // the first one
}

// CreateWAV creates or truncates the file and writes a header.
func CreateWAV(path string) (*WAVWriter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fail("Choose a folder that you can write to.", "cannot record: %w", err)
	}
	w := &WAVWriter{f: f, buf: make([]byte, 0, 64<<10)}
	if _, err := f.Write(WAVHeader(0)); err != nil {
		_ = f.Close()
		return nil, fail("Check whether the disk is full.", "cannot record: %w", err)
	}
	return w, nil
}

// Write appends samples. Values outside -1..1 are clipped, and NaN becomes 0. An
// error of an earlier, delayed write is returned here or by Close.
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
		w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(PCM16(x)))
	}
	if w.timer == nil && w.err == nil && len(samples) > 0 {
		w.timer = time.AfterFunc(syncEvery, w.tick)
	}
	return w.err
}

// Silence appends samples of silence. Most file systems store it in no space.
func (w *WAVWriter) Silence(samples int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return os.ErrClosed
	}
	w.flush()
	if w.err == nil {
		w.length += 2 * samples
		w.err = w.f.Truncate(WAVHeaderBytes + w.length)
	}
	if w.err == nil {
		_, w.err = w.f.Seek(0, io.SeekEnd)
	}
	return w.err // the header follows with the next Write
}

// tick runs after the first Write since the last one.
func (w *WAVWriter) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = nil
	if !w.closed {
		w.save()
	}
}

// flush writes the buffer to the file.
func (w *WAVWriter) flush() {
	if w.err == nil {
		var n int
		n, w.err = w.f.Write(w.buf)
		w.length += int64(n &^ 1) // whole samples of a disk that is full
	}
	w.buf = w.buf[:0]
}

// save writes the audio, then the header with its size, and syncs the file.
func (w *WAVWriter) save() {
	w.flush()
	// Also after an error: what was written before it is readable then.
	_, err := w.f.WriteAt(WAVHeader(w.length), 0)
	if w.err = cmp.Or(w.err, err); w.err == nil {
		w.err = w.f.Sync()
	}
}

// Close saves and closes the file. Further calls do nothing.
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
	w.err = cmp.Or(w.err, w.f.Close())
	return w.err
}
