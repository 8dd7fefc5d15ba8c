package protocol

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Link has two parties besides its callers:
//   - The manager is a goroutine. It takes the events of the present stream,
//     puts them on one clock, and when the stream is lost opens the next one.
//     It alone writes to Updates and closes it.
//   - The feeder is a goroutine for each stream. It sends what waits in the
//     backlog, as fast as the service's pace allows, and ends with its stream.

// DefaultReconnect is how long a lost stream is tried to be resumed where
// nothing else is said.
const DefaultReconnect = 2 * time.Minute

const (
	// assumedLatency is how far behind its newest sample a service decides
	// that has not said.
	assumedLatency = 2 * time.Second
	// lateness is how much later than that its events may come.
	lateness = 500 * time.Millisecond
	// preroll is audio that a new stream hears once more, to be warm.
	preroll = time.Second
	// aheadAtMost is how far the audio may run ahead of real time on the clock
	// of a stream: services close beyond 5 s.
	aheadAtMost = 4700 * time.Millisecond
	// settled is how long a stream must have lived for its loss to be a new
	// one: the back-off begins anew then.
	settled = 10 * time.Second
	// openTimeout bounds one try, request and handshake.
	openTimeout = 20 * time.Second
	// ackTime is how long a service may take to answer the ping behind its
	// first chunk; then it is taken to have had the chunk.
	ackTime = 3 * time.Second
)

// LinkOptions say how a Link behaves.
type LinkOptions struct {
	// Limit bounds the time without a stream; 0 = a lost stream is the end.
	Limit time.Duration
	// Live is a source that cannot wait: what a service has no time to take is
	// dropped, and marked as a gap. Audio of any other source waits.
	Live bool
	// Unpaced is a service that takes audio ahead of real time.
	Unpaced bool
	// Latency is how far behind the newest sample the service decides;
	// 0 = not known.
	Latency time.Duration
	// Hurry, where given, is closed when the user wants an end: a stream that
	// is lost by then, or later, is tried once more and no further.
	Hurry <-chan struct{}
}

// Link is a stream that outlives its connections: a lost one is resumed with a
// new one. Which losses are tried again, retry.go lists. Its methods may be
// called from any goroutine. Somebody must receive from Updates until it is
// closed, or call Close.
//
// To the outside it is one stream on one clock, that of the capture. Turns that
// are open when a stream is lost end where it is known to have decided; what
// follows is sent again, as far as it is kept and the pace of the new stream
// leaves time for, else it is a gap. The new stream is asked to go on with the
// voices of the old one; where it does not, its labels get names of their own.
type Link struct {
	client  *Client
	o       LinkOptions
	backlog *backlog
	updates chan Update
	life    context.Context // ended by Close
	cut     context.CancelFunc
	ended   chan struct{} // closed when end_of_stream has been sent
	over    chan struct{} // closed by the manager at its very end

	// Of the manager.
	splice *splice
	plain  bool // the service does not take the field resume

	mu       sync.Mutex // for all below
	stream   *Stream    // the newest
	id       string     // its id
	earlier  StreamStats
	began    time.Time // when chunk 0 would have been sent
	position int64     // what follows the newest chunk that was sent
	status   LinkStatus
	info     CloseInfo
}

// Update is an event, or a change of the link in its place.
type Update struct {
	// Event has its timestamp on the capture's clock. Of the first stream it
	// is otherwise as received; of later ones Raw is written anew.
	Event  Event
	Change *LinkChange
}

// LinkChange tells that a stream was lost, or that a new one goes on.
type LinkChange struct {
	// Lost is why the stream ended; nil when a new one goes on.
	Lost error
	// Gap is what no stream has decided, between the two.
	Gap Span
	// Known says that the new stream knows the voices of the old one.
	Known bool
}

// LinkStatus is how a link stands.
type LinkStatus struct {
	// Lost is why there is no stream now; nil while there is one.
	Lost error
	// Failed is why the newest try came to nothing; nil before that.
	Failed error
	// Tries counts them since the loss, Next is when the next one begins; zero
	// while one is under way.
	Tries int
	Next  time.Time
	// Losses counts the streams that were resumed.
	Losses int
	// Dropped counts the chunks that no stream was sent.
	Dropped int64
	// Fresh are the labels that came with a stream that did not know those
	// before: some of them may be people who have a label already.
	Fresh []string
}

// OpenLink opens a first stream; one that cannot be opened is an error at
// once. ctx bounds the opening only.
func (c *Client) OpenLink(ctx context.Context, o LinkOptions) (*Link, error) {
	live, err := c.CreateStream(ctx, nil)
	if err != nil {
		return nil, err
	}
	s, err := c.OpenStream(ctx, live.URL)
	if err != nil {
		return nil, err
	}
	if o.Latency <= 0 {
		o.Latency = assumedLatency
	}
	l := &Link{
		client: c, o: o, backlog: newBacklog(o.Live), updates: make(chan Update, c.stream.queue),
		ended: make(chan struct{}), over: make(chan struct{}),
		splice: newSplice(), id: live.ID, stream: s,
	}
	l.life, l.cut = context.WithCancel(context.Background())
	go l.manage(s)
	return l, nil
}

// Updates delivers events and changes in order. It is closed when the link is
// over.
func (l *Link) Updates() <-chan Update { return l.updates }

// Send takes one chunk, ChunkSamples long, for the service. seq is the chunk's
// number on the capture's clock and must grow. It does not wait for the
// service, but a source that can wait is held up while 5 s of audio wait. An
// error that is ErrStreamOver says that the link is over.
func (l *Link) Send(ctx context.Context, seq int64, samples []float32) error {
	if len(samples) != ChunkSamples {
		return fmt.Errorf("a chunk has %d samples, not %d", ChunkSamples, len(samples))
	}
	select {
	case <-l.over:
		return ErrStreamOver
	default:
	}
	return l.backlog.put(ctx, queued{seq, samples}, l.over)
}

// EndOfStream says that no more audio comes, and returns when that and all
// audio before it is sent, or when the link is over: then it is ErrStreamOver.
func (l *Link) EndOfStream(ctx context.Context) error {
	l.backlog.end()
	select {
	case <-l.ended:
		return nil
	case <-l.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-l.ended:
		return nil
	default:
		return ErrStreamOver
	}
}

// Wait blocks until the link is over and tells how.
func (l *Link) Wait() CloseInfo {
	<-l.over
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.info
}

// Close ends the link at once and returns when its goroutines have ended.
func (l *Link) Close() error {
	l.cut()
	_ = l.newest().Close()
	<-l.over
	return nil
}

func (l *Link) newest() *Stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stream
}

// Stats are those of the present stream, but for the counts, which are of all,
// and Ahead, which is of the whole session.
func (l *Link) Stats() StreamStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := l.stream.Stats()
	st.ChunksSent += l.earlier.ChunksSent
	st.BytesSent += l.earlier.BytesSent
	st.EventsReceived += l.earlier.EventsReceived
	st.Undelivered += l.earlier.Undelivered
	if st.Ahead = 0; !l.began.IsZero() {
		st.Ahead = time.Duration(l.position)*ChunkDuration - l.client.stream.now().Sub(l.began)
	}
	return st
}

// ID is the service's name for the newest stream.
func (l *Link) ID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// Sent is the position of the newest sample that was sent, in seconds of the
// capture's clock.
func (l *Link) Sent() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return chunkTime(l.position)
}

// Status is how the link stands now.
func (l *Link) Status() LinkStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := l.status
	l.backlog.mu.Lock()
	defer l.backlog.mu.Unlock()
	st.Dropped = l.backlog.dropped
	return st
}

// Gaps are the stretches that no stream has decided, in order. The slice is
// shared: read only.
func (l *Link) Gaps() []Span {
	l.backlog.mu.Lock()
	defer l.backlog.mu.Unlock()
	return l.backlog.gaps[:len(l.backlog.gaps):len(l.backlog.gaps)]
}

// feed sends what waits to one stream until there is no more or the stream is
// over.
func (l *Link) feed(s *Stream) {
	for n := int64(0); ; {
		c, ok, ended := l.backlog.first()
		switch {
		case ok && !l.pace(s, n):
			return
		case ok:
			if s.Send(l.life, c.seq, c.samples) != nil {
				return
			}
			n++
			l.backlog.sent(c.seq)
			l.noteSent(c.seq)
		case ended:
			if s.EndOfStream(l.life) == nil {
				select {
				case <-l.ended:
				default:
					close(l.ended)
				}
			}
			return
		default:
			select {
			case <-l.backlog.kick:
			case <-s.over:
				return
			}
		}
	}
}

func (l *Link) noteSent(seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began.IsZero() {
		l.began = l.client.stream.now().Add(-time.Duration(seq) * ChunkDuration)
	}
	l.position = max(l.position, seq+1)
}

// pace waits until the n-th chunk of a stream may go; false when the stream is
// over. Real time is counted from when the service certainly had the first
// chunk, which may have been on its way for long.
func (l *Link) pace(s *Stream, n int64) bool {
	for !l.o.Unpaced && time.Duration(n+1)*ChunkDuration > aheadAtMost {
		_, first := s.reach()
		now := s.config.now()
		if at := s.firstChunk().Add(ackTime); first.IsZero() && now.After(at) {
			first = at
		}
		wait := 20 * time.Millisecond
		if !first.IsZero() {
			wait = time.Duration(n+1)*ChunkDuration - aheadAtMost - now.Sub(first)
		}
		if wait <= 0 {
			break
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.over:
			t.Stop()
			return false
		}
	}
	return true
}

// deliver hands updates out; false when the link was closed.
func (l *Link) deliver(updates ...Update) bool {
	for _, u := range updates {
		select {
		case l.updates <- u:
		case <-l.life.Done():
			return false
		}
	}
	return true
}

func asUpdates(events []Event) (out []Update) {
	for _, e := range events {
		out = append(out, Update{Event: e})
	}
	return out
}

// relay takes the events of one stream to its end.
func (l *Link) relay(s *Stream) {
	tick := time.NewTicker(l.client.stream.settleEvery)
	defer tick.Stop()
	for {
		select {
		case e, ok := <-s.Events():
			if !ok {
				return
			}
			if !l.deliver(asUpdates(l.splice.event(s.OnCaptureClock(e)))...) {
				_ = s.Close()
				return
			}
			l.noteFresh()
		case <-tick.C:
			decided := l.decided(s)
			if !l.deliver(asUpdates(l.splice.settle(decided))...) {
				_ = s.Close()
				return
			}
			l.backlog.forget(max(decided, l.splice.last) - preroll.Seconds())
		}
	}
}

func (l *Link) noteFresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.Fresh = l.splice.fresh[:len(l.splice.fresh):len(l.splice.fresh)]
}

// decided is how far a stream has certainly decided, and told: by its newest
// event, or by the pong that said what audio it had.
func (l *Link) decided(s *Stream) float64 {
	acked, _ := s.reach()
	at := -1.0
	if acked > 0 {
		at = s.CaptureTime(float64(acked)*ChunkDuration.Seconds()) - (l.o.Latency + lateness).Seconds()
	}
	return max(at, l.splice.last, l.splice.cut)
}

// errGaveUp is in the error of a link whose lost stream could not be resumed.
var errGaveUp = errors.New("not resumed")
