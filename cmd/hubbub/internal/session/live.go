package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hubbub/capture"
	"hubbub/capture/audiofile"
	"hubbub/cmd/hubbub/internal/crash"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/cmd/hubbub/internal/voices"
	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/recovered"
	"hubbub/protocol/words"
	"hubbub/tui/display"
)

// Stream is what carries the chunks of a session to a service: a
// *client.ResilientStream, or *client.Tracks for a source with several tracks. Their
// methods are documented there.
type Stream interface {
	Updates() <-chan client.Update
	Send(seq int64, samples []float32) error
	EndOfStream() error
	Wait() client.CloseInfo
	Close()
	Words() bool // the service sends what was said
	Track(label string) int
	State() client.State
}

// LiveParts are the parts of a live session in the order of the data path.
type LiveParts struct {
	Source      capture.Info
	Chunks      *capture.ChunkReader
	EndInput    context.CancelFunc // ends Chunks
	Stream      Stream
	Recorder    *recording.Recorder
	Annotations *protocol.AnnotationsStore
	Voices      *voices.Learner  // nil = voices are not learnt
	Recogniser  words.Recogniser // nil = none of the user
	Server      string           // display name
	Latency     time.Duration    // of the built-in server; 0 = unknown
	Shared      bool             // others can watch the stream: the service is a remote one
	Trust       string           // flags that they need to trust it
}

// Live is a session whose audio is sent to a service. A lost stream is resumed;
// the session is one all the same.
type Live struct {
	LiveParts
	timeline    *protocol.Timeline
	levels      display.History
	started     time.Time
	voices      *voiceMemory // nil = voices are not learnt
	mics        *microphones
	transcriber *transcriber
	patient     bool // an interrupt does not end the wait for the service

	recordInto string     // folder of the recording that runs from the start on; "" = none does
	recordMu   sync.Mutex // held while a recording is started or stopped
	recordings []string   // folders of those that the user started

	phase
	inputEnded chan struct{} // closed at the end of the input

	unfinished bool // the stream ended early: audio after what it was sent is not decided

	words     context.Context // ends when no turn waits for its words any more
	skipWords context.CancelFunc
}

// NewLive is a session that begins now.
func NewLive(p LiveParts) *Live {
	l := &Live{LiveParts: p, timeline: protocol.NewTimeline(), started: time.Now(), mics: newMicrophones(p.Chunks), inputEnded: make(chan struct{})}
	l.conn = display.Open
	l.transcriber = newTranscriber(p.Recogniser, p.Stream.Track)
	p.Recorder.Gaps = l.gaps
	l.recordInto, _ = p.Recorder.Dir()
	l.words, l.skipWords = context.WithCancel(context.Background())
	if p.Voices != nil {
		l.voices = &voiceMemory{p.Voices, l, audiofile.NewRecent(voiceAudio)}
	}
	return l
}

// SkipWords displays the turns that wait for their words without them. It reports false when
// it has done that before, or there are no words.
func (l *Live) SkipWords() bool {
	if l.words.Err() != nil {
		return false
	}
	l.skipWords()
	return l.transcriber.queue != nil || l.Stream.Words()
}

// end ends the input. What was captured is still sent and decided.
func (l *Live) end() { l.EndInput() }

// run is the data path: one goroutine reads the source and sends, this one receives.
func (l *Live) run(ctx context.Context, d Display) error {
	defer l.mics.close()
	defer l.transcriber.close()
	// The built-in server always finishes: what it has received is decided and written. A screen says
	// that ctrl+c ends the wait.
	l.patient = !l.Shared && !d.Properties().StaysOpen
	sent := make(chan error, 1)
	go func() { sent <- l.send(ctx) }()
	receiveErr := recovered.Guard(func() error { return l.receive(d) })
	l.end()
	for range l.Stream.Updates() { // after a panic of receive, so that the stream does not wait
	}
	sendErr := <-sent
	closed := l.Stream.Wait()
	if ctx.Err() != nil && closed.Reason == client.Cancelled {
		closed.Err = nil // its user ended it
		if errors.Is(sendErr, client.ErrStreamOver) {
			sendErr = nil
		}
		_ = d.notice("interrupted before the service had finished; the last turns may be missing", false)
	}

	l.mu.Lock()
	l.unfinished = closed.Reason != client.Completed
	l.mu.Unlock()
	sourceErr := l.Chunks.Err()
	if errors.Is(sourceErr, context.Canceled) { // by end or ctx
		sourceErr = nil
	}
	cause := cmp.Or(sourceErr, closed.Err)
	l.setOver(cause)
	if recovered.Caught(sendErr) { // which closed the stream
		return sendErr
	}
	return cmp.Or(cause, sendErr, receiveErr)
}

// send sends all chunks and the end of the stream, also after the end of ctx. After a panic it closes the
// stream, which nobody else would end.
func (l *Live) send(ctx context.Context) error {
	err := recovered.Guard(func() error { return l.sendChunks(ctx) })
	if recovered.Caught(err) {
		l.Stream.Close()
	}
	return err
}

func (l *Live) sendChunks(interrupt context.Context) error {
	var failed error
	for c := range l.Chunks.Chunks() {
		crash.TestHook("send")
		l.Recorder.Audio(c)
		l.levels.Add(c.Seq, display.Level(c.Level))
		l.transcriber.audio(c)
		l.voices.audio(c)
		if failed != nil {
			continue // the recording contains what was captured until the source has ended
		}
		if failed = l.Stream.Send(c.Seq, c.Tracks); failed != nil {
			l.end()
		}
	}
	if failed != nil {
		return failed
	}
	l.drain(interrupt)
	return l.Stream.EndOfStream() // each step of it has a deadline
}

// receive delivers events, changes of the connection and words until the stream is
// over and no turn waits for its words.
func (l *Live) receive(d Display) error {
	out := output{timeline: l.timeline, rec: l.Recorder, display: d, transcriber: l.transcriber, fromService: l.Stream.Words(), end: l.end}
	input := l.Chunks.Stats()
	wait := time.NewTicker(waitNotice)
	defer wait.Stop()
	skipped, inputEnded := l.words.Done(), l.inputEnded
	for updates := l.Stream.Updates(); updates != nil || out.waiting(); {
		select {
		case <-skipped:
			skipped = nil
			out.skipWords()
		case u, more := <-updates:
			if !more {
				updates = nil
				wait.Reset(waitNotice)
				l.end()
				out.streamOver(l.Stream.State().Sent)
				continue
			}
			crash.TestHook("receive")
			if u.Change != nil {
				out.keep(d.notice(describeChange(u.Change, d), u.Change.Lost != nil))
				l.Recorder.SaveGaps()
				continue
			}
			out.event(l.Chunks.Stats().Position.Seconds(), u.Event)
		case t := <-l.transcriber.transcripts:
			out.transcript(t)
		case <-out.due():
			out.release()
		case err := <-l.transcriber.failures:
			out.keep(d.notice(describeFailure(err), false))
		case <-inputEnded:
			inputEnded = nil
			wait.Reset(waitNotice)
		case <-wait.C:
			switch {
			case updates == nil:
				out.keep(d.notice("waiting for the words of the last turns; ctrl+c displays them without", false))
			case inputEnded == nil:
				out.keep(d.notice(describeWait(l.Stream.State().StreamStats), false))
			}
		case <-l.Recorder.Changed():
			out.recordingStopped()
		case <-l.Chunks.Changed():
			now := l.Chunks.Stats()
			out.keep(reportInput(input, now, d))
			input = now
			l.Recorder.SaveGaps()
		}
	}
	out.wordsFailed()
	return out.failed
}

// waitNotice is how often a session whose input has ended says that it waits for
// the service.
const waitNotice = 10 * time.Second

// describeWait says that the service has not read all audio yet. How far it is behind is known
// only of one that answers pings.
func describeWait(s client.StreamStats) string {
	text := "the input has ended; waiting for the service"
	if s.RTT > 0 && s.Behind >= time.Second {
		text += fmt.Sprintf(", which is %.0f s behind", s.Behind.Seconds())
	}
	return text
}

// drain says that the input has ended. An interrupt from now on ends the wait for words and,
// unless the session is patient, for the service; of an input that one has ended, both are
// waited for.
func (l *Live) drain(interrupt context.Context) {
	if interrupt.Err() == nil {
		context.AfterFunc(interrupt, func() {
			if !l.patient {
				l.Stream.Close()
			}
			l.skipWords()
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = display.Draining
	close(l.inputEnded)
}
