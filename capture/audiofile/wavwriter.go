package audiofile

import (
	"cmp"
	"io"
	"os"

	"hubbub/protocol/hint"
)

// WAVWriter writes 16 kHz mono as 16-bit PCM. After each Save the audio is on the disk
// and the sizes in the header are correct.
type WAVWriter struct {
	f      *os.File
	buf    []byte // audio not yet in the file
	length int64  // bytes of audio in the file
	saved  int64  // of them in the header
	err    error  // the first one
}

// maxBuffer is from how many bytes on audio is written to the file.
const maxBuffer = 64 << 10

// CreateWAV creates or truncates the file and writes a header.
func CreateWAV(path string) (*WAVWriter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, hint.Errorf("Choose a folder that you may write to.", "%w", err)
	}
	w := &WAVWriter{f: f}
	if _, err := f.Write(WAVHeader(0)); err != nil {
		_ = f.Close()
		return nil, hint.Errorf("Check whether the disk is full.", "%w", err)
	}
	return w, nil
}

// Write appends samples. Values outside -1..1 are clipped, and NaN becomes 0. An
// error of an earlier, delayed write is returned by each method.
func (w *WAVWriter) Write(samples []float32) error {
	if w.buf = AppendPCM16(w.buf, samples); len(w.buf) >= maxBuffer {
		w.flush()
	}
	return w.err
}

// Silence appends samples of silence. Most file systems store it in no space.
func (w *WAVWriter) Silence(samples int64) error {
	w.flush()
	if w.err == nil {
		w.length += 2 * samples
		w.err = w.f.Truncate(WAVHeaderBytes + w.length)
	}
	if w.err == nil {
		_, w.err = w.f.Seek(0, io.SeekEnd)
	}
	return w.err
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

// Save writes the audio, then the header with its size, and syncs the file.
func (w *WAVWriter) Save() error {
	w.flush()
	if w.length == w.saved {
		return w.err
	}
	// Also after an error: what was written before it is readable then.
	_, err := w.f.WriteAt(WAVHeader(w.length), 0)
	w.saved = w.length
	if w.err = cmp.Or(w.err, err); w.err == nil {
		w.err = w.f.Sync()
	}
	return w.err
}

// Close saves and closes the file.
func (w *WAVWriter) Close() error {
	return cmp.Or(w.Save(), w.f.Close())
}
