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

// recording keeps a session in a folder: audio.wav, events.ndjson and
// turns.rttm. All three are readable at any moment, up to the last second of a
// program that was killed. A nil *recording keeps nothing.
type recording struct {
	name   string
	wav    *capture.WAVWriter
	events *os.File
	turns  *os.File

	live  bool // the source does not wait
	queue chan capture.Chunk
	lost  atomic.Int64
	done  sync.WaitGroup
	err   error // of the audio; read after done
}

// openRecording makes the folder. It never writes over an earlier recording.
func openRecording(dir string, source capture.Info) (*recording, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, &failure{fmt.Errorf("cannot record: %w", err), "Choose a folder that you may write to."}
	}
	r := &recording{name: source.Base, live: source.Kind == capture.Mic, queue: make(chan capture.Chunk, recordQueue)}
	for _, f := range []string{"audio.wav", "events.ndjson", "turns.rttm"} {
		_, err := os.Lstat(filepath.Join(dir, f))
		if err == nil {
			return nil, &failure{fmt.Errorf("%s holds a recording already", dir), "Choose another folder; nothing there was changed."}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, &failure{fmt.Errorf("cannot record: %w", err), "Choose a folder that you may write to."}
		}
	}
	var err error
	if r.wav, err = capture.CreateWAV(filepath.Join(dir, "audio.wav")); err == nil {
		if r.events, err = create(dir, "events.ndjson"); err == nil {
			r.turns, err = create(dir, "turns.rttm")
		}
	}
	if err != nil {
		return nil, &failure{fmt.Errorf("cannot record: %w", err), "Choose a folder that you may write to."}
	}
	r.done.Add(1)
	go r.writeAudio()
	return r, nil
}

func create(dir, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666)
}

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
		r.err = r.wav.Write(c.Samples[:c.Valid])
	}
}

func (r *recording) event(e protocol.Event) error {
	if r == nil || len(e.Raw) == 0 {
		return nil
	}
	_, err := r.events.Write(append(append([]byte(nil), e.Raw...), '\n'))
	return recordError(err)
}

func (r *recording) turn(t protocol.Turn) error {
	if r == nil {
		return nil
	}
	_, err := fmt.Fprintln(r.turns, protocol.FormatRTTM(r.name, t))
	return recordError(err)
}

func (r *recording) dropped() int64 {
	if r == nil {
		return 0
	}
	return r.lost.Load()
}

// close writes what is queued and closes all three. No audio may come after it.
func (r *recording) close() error {
	if r == nil {
		return nil
	}
	close(r.queue)
	r.done.Wait()
	return recordError(errors.Join(r.err, r.wav.Close(), r.events.Close(), r.turns.Close()))
}

func recordError(err error) error {
	if err == nil {
		return nil
	}
	return &failure{fmt.Errorf("the recording is incomplete: %w", err), "See whether the disk is full; what was written so far is readable."}
}
