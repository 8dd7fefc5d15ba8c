package recording

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"hubbub/capture"
	"hubbub/capture/audiofile"
	"hubbub/cmd/hubbub/internal/crash"
	"hubbub/protocol"
	"hubbub/protocol/atomicfile"
	"hubbub/protocol/diskspace"
	"hubbub/protocol/errno"
	"hubbub/protocol/hint"
	"hubbub/protocol/recovered"
)

// audioQueue bounds the audio that waits for the disk, in chunks: 30 s.
const audioQueue = 300

// Writer writes one recording. All files are readable at any moment; a program
// that is killed loses at most the last second.
//
// Audio is written by a goroutine of its own, which Close ends. Audio, Event
// and Turn may be called from one goroutine each.
type Writer struct {
	dir         string
	info        Info
	wav         *audiofile.WAVWriter
	events      *os.File
	arrivals    *os.File
	turns       *os.File
	words       *os.File // nil until the first
	annotations *AnnotationsSaver

	queue   chan capture.Chunk
	dropped atomic.Int64
	bytes   atomic.Int64 // written
	free    atomic.Int64 // bytes on the disk
	length  atomic.Int64 // samples of audio
	failure atomic.Pointer[Failure]
	changed chan<- struct{} // gets a value at the first failure
	written sync.WaitGroup
}

// Failure is why and when a recording stopped before the session ended.
type Failure struct {
	Err      error
	At       time.Time
	Position float64 // in seconds
}

// String says it in one line.
func (f *Failure) String() string {
	reason := f.Err.Error()
	if diskFull(f.Err) {
		reason = "the disk is full"
	}
	return fmt.Sprintf("recording stopped at %s, after %s: %s", f.At.Format("15:04:05"), time.Duration(f.Position*float64(time.Second)).Truncate(time.Second), reason)
}

func diskFull(err error) bool {
	return errno.Is(err, syscall.ENOSPC, syscall.EDQUOT)
}

// Status is the state of a recording.
type Status struct {
	Length      float64 // in seconds
	Bytes, Free int64   // size of the recording, free space on its disk
	Failure     *Failure
}

// Status may be called from any goroutine.
func (w *Writer) Status() *Status {
	return &Status{float64(w.length.Load()) / capture.SampleRate, w.bytes.Load(), w.free.Load(), w.failure.Load()}
}

func (w *Writer) measureDisk() {
	free, _, _ := diskspace.Of(w.dir) // 0 = unknown
	w.free.Store(free)
}

// fail stops the recording at its first failure; the session continues.
func (w *Writer) fail(err error) {
	if err == nil {
		return
	}
	if w.failure.CompareAndSwap(nil, &Failure{err, time.Now(), float64(w.length.Load()) / capture.SampleRate}) {
		select {
		case w.changed <- struct{}{}:
		default: // the receiver has not received the last one
		}
	}
}

// newWriter makes the folder dir and the files of a recording. It replaces no
// earlier recording. A failure of the recording is reported to changed. begin must
// follow.
func newWriter(dir string, info Info, changed chan<- struct{}) (*Writer, error) {
	w := &Writer{dir: dir, info: info, queue: make(chan capture.Chunk, audioQueue), changed: changed}
	w.info.Started = now()
	if err := w.createFiles(); err != nil {
		w.removeFiles()
		return nil, err
	}
	w.measureDisk()
	return w, nil
}

// begin starts to write audio, and the annotations of a recording that begins at a time
// of the session, in seconds.
func (w *Writer) begin(annotations *protocol.AnnotationsStore, from float64) {
	w.annotations = SaveAnnotations(w.dir, annotations, from)
	w.written.Go(w.writeAudio)
}

func cannotRecord(err error) error {
	if diskFull(err) {
		return hint.Errorf("Free disk space, or record into another folder.", "cannot record: the disk is full")
	}
	return hint.Add(fmt.Errorf("cannot record: %w", err), "Choose a folder that you may write to.")
}

func (w *Writer) createFiles() error {
	if err := os.MkdirAll(w.dir, 0o777); err != nil {
		return cannotRecord(err)
	}
	for _, name := range files {
		switch _, err := os.Lstat(w.Path(name)); {
		case err == nil:
			return hint.Add(existsError(w.dir), "Choose another folder; nothing there was changed.")
		case !errors.Is(err, fs.ErrNotExist):
			return cannotRecord(err)
		}
	}
	for _, f := range []struct {
		name string
		file **os.File
	}{{EventsFile, &w.events}, {ArrivalsFile, &w.arrivals}, {TurnsFile, &w.turns}} {
		var err error
		if *f.file, err = os.OpenFile(w.Path(f.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666); err != nil {
			return cannotRecord(err)
		}
	}
	if err := w.writeInfo(); err != nil {
		return cannotRecord(err)
	}
	var err error
	if w.wav, err = audiofile.CreateWAV(w.Path(AudioFile)); err != nil {
		return cannotRecord(err)
	}
	return nil
}

// removeFiles removes what createFiles has made before it failed: another attempt may
// use the folder.
func (w *Writer) removeFiles() {
	if w.events == nil { // the first: others are not of this recording
		return
	}
	for _, f := range []*os.File{w.events, w.arrivals, w.turns} {
		_ = f.Close() // also of nil
	}
	for _, name := range files {
		_ = os.Remove(w.Path(name))
	}
}

// Path is the path of one of its files.
func (w *Writer) Path(name string) string { return filepath.Join(w.dir, name) }

func (w *Writer) writeInfo() error {
	raw, err := json.MarshalIndent(w.info, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(w.Path(SessionFile), append(raw, '\n'), 0o666)
}

func (w *Writer) setGaps(gaps []protocol.Span) {
	if w.failure.Load() == nil && !slices.Equal(w.info.Gaps, gaps) {
		w.info.Gaps = gaps
		w.fail(w.writeInfo())
	}
}

// Audio records a chunk. A file waits for the disk. A microphone does not: when
// the disk is 30 s behind, chunks are dropped from the recording and counted.
func (w *Writer) Audio(c capture.Chunk) {
	if w.failure.Load() != nil {
		return
	}
	if !w.info.live {
		w.queue <- c
		return
	}
	select {
	case w.queue <- c:
	default:
		w.dropped.Add(1)
	}
}

// writeAudio writes the queued chunks and saves them regularly. Silence takes the place
// of those that are missing: dropped here, or not captured.
func (w *Writer) writeAudio() {
	tick := time.NewTicker(saveInterval)
	defer tick.Stop()
	next := int64(0)
	for {
		select {
		case <-tick.C:
			w.measureDisk()
			w.fail(recovered.Guard(w.wav.Save)) // also after a failure: what was written before it is readable then
		case c, more := <-w.queue:
			if !more {
				return
			}
			if w.failure.Load() == nil {
				w.fail(recovered.Guard(func() error { return w.writeChunk(c, &next) }))
			}
		}
	}
}

func (w *Writer) writeChunk(c capture.Chunk, next *int64) error {
	crash.TestHook("record")
	if missing := c.Seq - *next; missing > 0 {
		if err := w.wav.Silence(missing * capture.ChunkSamples); err != nil {
			return err
		}
	}
	*next = c.Seq + 1
	err := w.wav.Write(c.Samples[:c.Valid])
	samples := c.Seq*capture.ChunkSamples + int64(c.Valid)
	w.bytes.Add(2 * (samples - w.length.Swap(samples)))
	return err
}

// Event records a message as received, with its timestamp on the recording's
// clock. position is how many seconds of audio had been read when it arrived.
func (w *Writer) Event(position float64, e protocol.Event) {
	if len(e.Raw) == 0 {
		return
	}
	line, err := json.Marshal(arrival{protocol.Round1ms(position), protocol.Round1ms(e.Timestamp)})
	if err != nil {
		w.fail(err)
		return
	}
	// The arrival is written after its event: a crash in between loses no event.
	w.write(w.events, append(bytes.Clone(e.Raw), '\n'))
	w.write(w.arrivals, append(line, '\n'))
}

// Turn records a finished turn.
func (w *Writer) Turn(t protocol.Turn) {
	w.write(w.turns, []byte(protocol.FormatRTTM(w.info.Name, t)+"\n"))
}

// Transcript records a turn with its transcript. It is called from the goroutine of Turn.
func (w *Writer) Transcript(t protocol.Turn) {
	if w.failure.Load() != nil {
		return
	}
	line, err := json.Marshal(t)
	if err == nil && w.words == nil {
		w.words, err = os.OpenFile(w.Path(WordsFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666)
	}
	if err != nil {
		w.fail(err)
		return
	}
	w.write(w.words, append(line, '\n'))
}

// write appends a line to a file, unless the recording has stopped.
func (w *Writer) write(f *os.File, line []byte) {
	if w.failure.Load() == nil {
		n, err := f.Write(line)
		w.bytes.Add(int64(n))
		w.fail(err)
	}
}

// Close writes what is queued, completes session.json and closes all files. No
// call may follow. gaps are the stretches that no stream has decided, and those in
// which the device delivered nothing.
func (w *Writer) Close(gaps []protocol.Span) error {
	close(w.queue)
	w.written.Wait()
	w.fail(w.wav.Close())
	w.fail(errors.Join(w.events.Close(), w.arrivals.Close(), w.turns.Close()))
	if w.words != nil {
		w.fail(w.words.Close())
	}
	annotations := w.annotations.Close()
	ended := now()
	w.info.Ended, w.info.Gaps = &ended, gaps
	info := w.writeInfo()
	if f := w.failure.Load(); f != nil {
		if annotations != nil {
			return hint.Add(fmt.Errorf("%v; names and bookmarks were not saved either", f), failureHint)
		}
		if recovered.Caught(f.Err) {
			return f.Err
		}
		return hint.Add(errors.New(f.String()), failureHint)
	}
	if info != nil {
		info = hint.Add(fmt.Errorf("the recording is incomplete: %w", info), failureHint)
	}
	return cmp.Or(annotations, info)
}

// existsError is an fs.ErrExist: the folder has a recording.
type existsError string

func (e existsError) Error() string        { return string(e) + " holds a recording already" }
func (e existsError) Is(target error) bool { return target == fs.ErrExist }

const failureHint = "Free disk space, or record into another folder; what was written before is readable."

// saveInterval is how often the audio is saved and the free space is measured.
const saveInterval = 900 * time.Millisecond
