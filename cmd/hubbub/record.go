package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"hubbub/capture"
	"hubbub/protocol"
)

// recordQueue bounds the audio on its way to the disk, in chunks: 30 s.
const recordQueue = 300

// recording keeps a session in a folder: audio.wav, events.ndjson, turns.rttm,
// and what else replay wants to know. All are readable at any moment, up to the
// last second of a program that was killed. A nil *recording keeps nothing.
type recording struct {
	dir      string
	info     sessionInfo
	wav      *capture.WAVWriter
	events   *os.File
	arrivals *os.File
	turns    *os.File
	notes    *notesKeeper

	live  bool // the source does not wait
	queue chan capture.Chunk
	lost  atomic.Int64
	done  sync.WaitGroup
	err   error // of the audio; read after done
}

// openRecording makes the folder. It never writes over an earlier recording.
func openRecording(dir string, source capture.Info, info sessionInfo, notes *protocol.AnnotationsStore) (*recording, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, &failure{fmt.Errorf("cannot record: %w", err), "Choose a folder that you may write to."}
	}
	r := &recording{dir: dir, info: info, live: source.Kind == capture.Mic, queue: make(chan capture.Chunk, recordQueue)}
	for _, f := range []string{audioFile, eventsFile, turnsFile, sessionFile, arrivalsFile, notesFile} {
		_, err := os.Lstat(filepath.Join(dir, f))
		if err == nil {
			return nil, &failure{fmt.Errorf("%s holds a recording already", dir), "Choose another folder; nothing there was changed."}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, &failure{fmt.Errorf("cannot record: %w", err), "Choose a folder that you may write to."}
		}
	}
	var err error
	for _, f := range []struct {
		name string
		file **os.File
	}{{eventsFile, &r.events}, {arrivalsFile, &r.arrivals}, {turnsFile, &r.turns}} {
		if err == nil {
			*f.file, err = os.OpenFile(r.path(f.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666)
		}
	}
	if err == nil {
		err = r.describe()
	}
	if err == nil && source.Kind != watched { // whose audio is elsewhere
		r.wav, err = capture.CreateWAV(r.path(audioFile))
	}
	if err != nil {
		return nil, &failure{fmt.Errorf("cannot record: %w", err), "Choose a folder that you may write to."}
	}
	r.notes = keepNotes(dir, notes)
	r.done.Add(1)
	go r.writeAudio()
	return r, nil
}

func (r *recording) path(name string) string { return filepath.Join(r.dir, name) }

// audio takes a chunk for the disk. A microphone cannot wait: a disk that is
// 30 s behind costs audio of the recording, counted. A file can.
func (r *recording) audio(c capture.Chunk) {
	if r == nil {
		return
	}
	if !r.live {
		r.queue <- c
		return
	}
	select {
	case r.queue <- c:
	default:
		r.lost.Add(1)
	}
}

func (r *recording) writeAudio() {
	defer r.done.Done()
	for c := range r.queue {
		if r.err != nil {
			r.lost.Add(1)
			continue
		}
		r.err = guarded(func() error {
			provoke("record")
			return r.wav.Write(c.Samples[:c.Valid])
		})
	}
}

// event takes a message as it was received, with its timestamp on the
// recording's clock, at a moment when so many seconds had been heard.
func (r *recording) event(heard float64, e protocol.Event) error {
	if r == nil || len(e.Raw) == 0 {
		return nil
	}
	_, err := r.events.Write(append(append([]byte(nil), e.Raw...), '\n'))
	if err == nil {
		err = r.arrived(heard, e)
	}
	return recordError(err)
}

func (r *recording) turn(t protocol.Turn) error {
	if r == nil {
		return nil
	}
	_, err := fmt.Fprintln(r.turns, protocol.FormatRTTM(r.info.Name, t))
	return recordError(err)
}

func (r *recording) dropped() int64 {
	if r == nil {
		return 0
	}
	return r.lost.Load()
}

// close writes what is queued and closes all files. No audio may come after it.
func (r *recording) close() error {
	if r == nil {
		return nil
	}
	close(r.queue)
	r.done.Wait()
	return firstOf(recordError(errors.Join(r.err, r.closeAudio(), r.events.Close(), r.arrivals.Close(), r.turns.Close())), r.notes.close())
}

func (r *recording) closeAudio() error {
	if r.wav == nil {
		return nil
	}
	return r.wav.Close()
}

func recordError(err error) error {
	if err == nil {
		return nil
	}
	return &failure{fmt.Errorf("the recording is incomplete: %w", err), "See whether the disk is full; what was written so far is readable."}
}
