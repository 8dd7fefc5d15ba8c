package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"hubbub/protocol"
)

// Tracks are the streams of a session with several tracks, one for each: their
// events are merged into those of one session. Its methods are those of a
// ResilientStream and may be called from any goroutine.
type Tracks struct {
	streams []*ResilientStream
	updates chan Update

	mu     sync.Mutex // guards what follows
	labels *trackLabels
}

// OpenTracks opens a stream for each of n tracks; a failure is returned at once,
// and ctx bounds the opening only. With rooms, every track may have several
// speakers, and labels are given in order of first speech. Without, all speech of a
// track is one speaker: SPEAKER_00 for the first track, and so on.
func (c *Client) OpenTracks(ctx context.Context, o ResilientOptions, n int, rooms bool) (*Tracks, error) {
	t := &Tracks{updates: make(chan Update, c.config.eventQueue), labels: newTrackLabels(rooms)}
	for range n {
		s, err := c.OpenResilient(ctx, o)
		if err != nil {
			t.closeAll()
			return nil, err
		}
		t.streams = append(t.streams, s)
	}
	var forwarders sync.WaitGroup
	for i, s := range t.streams {
		forwarders.Go(func() { t.forward(i, s) })
	}
	go func() {
		forwarders.Wait()
		close(t.updates)
	}()
	return t, nil
}

// forward passes on what one stream delivers. When a stream has failed, the session
// is over.
func (t *Tracks) forward(track int, s *ResilientStream) {
	for u := range s.Updates() {
		if u.Change == nil {
			t.mu.Lock()
			event, ok := t.labels.event(track, u.Event)
			t.mu.Unlock()
			if !ok {
				continue
			}
			u.Event = event
		}
		t.updates <- u
	}
	if s.Wait().Err != nil {
		for _, other := range t.streams {
			if other != s {
				other.abort()
			}
		}
	}
}

// closeAll closes the streams at the same time.
func (t *Tracks) closeAll() {
	var all sync.WaitGroup
	for _, s := range t.streams {
		all.Go(s.Close)
	}
	all.Wait()
}

// Words is false: the turns of a track are not those of its stream.
func (t *Tracks) Words() bool { return false }

// Track is the track of a label of the session, from 0 on.
func (t *Tracks) Track(label string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.labels.track(label)
}

// Updates delivers events and changes; those of one track are in order. It is
// closed when all streams are over.
func (t *Tracks) Updates() <-chan Update { return t.updates }

// Send accepts one chunk of every track, one track after the other, as
// ResilientStream.Send does.
func (t *Tracks) Send(seq int64, samples []float32) error {
	if want := len(t.streams) * protocol.ChunkSamples; len(samples) != want {
		return fmt.Errorf("a chunk of %d tracks has %d samples, not %d", len(t.streams), want, len(samples))
	}
	for i, s := range t.streams {
		if err := s.Send(seq, samples[i*protocol.ChunkSamples:(i+1)*protocol.ChunkSamples]); err != nil {
			return err
		}
	}
	return nil
}

// EndOfStream says that no more audio comes, as ResilientStream.EndOfStream does.
func (t *Tracks) EndOfStream() error {
	var all errgroup.Group
	for _, s := range t.streams {
		all.Go(s.EndOfStream)
	}
	return all.Wait()
}

// Wait blocks until all streams are over and says how: the first failure, or how
// the first stream ended.
func (t *Tracks) Wait() CloseInfo {
	infos := make([]CloseInfo, len(t.streams))
	for i, s := range t.streams {
		infos[i] = s.Wait()
	}
	for _, i := range infos {
		if i.Err != nil && i.Reason != Cancelled {
			return i
		}
	}
	return infos[0]
}

// Close ends all streams at once. The caller may stop receiving from Updates.
func (t *Tracks) Close() {
	go func() {
		for range t.updates { // a forwarder may wait for the caller
		}
	}()
	t.closeAll()
}

// State is that of the first stream, with the sums of ChunksSent, Dropped and Losses, the
// largest Behind, the time up to which every track was sent, the connection that is lost
// if there is one, and the new labels and gaps of all. Gaps of several tracks may overlap.
func (t *Tracks) State() (all State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var labels []string
	var gaps []protocol.Span
	losses := 0
	for i, s := range t.streams {
		st := s.State()
		for _, label := range st.NewLabels {
			if t.labels.rooms {
				labels = append(labels, t.labels.label(i, label))
			}
		}
		gaps, losses = append(gaps, st.Gaps...), losses+st.Connection.Losses
		if i == 0 {
			all = st
			continue
		}
		all.ChunksSent, all.Dropped = all.ChunksSent+st.ChunksSent, all.Dropped+st.Dropped
		all.Behind, all.Sent = max(all.Behind, st.Behind), min(all.Sent, st.Sent)
		if all.Connection.Lost == nil && st.Connection.Lost != nil {
			all.Connection = st.Connection
		}
	}
	slices.SortFunc(gaps, func(a, b protocol.Span) int { return cmp.Compare(a.Start, b.Start) })
	all.NewLabels, all.Gaps, all.Connection.Losses = labels, gaps, losses
	return all
}

// trackLabels maps the labels of tracks to those of the session.
type trackLabels struct {
	rooms  bool
	labels map[trackLabel]string
	open   map[trackLabel]bool
	speaks map[int]int // open turns of a track
}

type trackLabel struct {
	track int
	label string
}

func newTrackLabels(rooms bool) *trackLabels {
	return &trackLabels{rooms: rooms, labels: map[trackLabel]string{}, open: map[trackLabel]bool{}, speaks: map[int]int{}}
}

// label is the session's label; "" = there are too many.
func (t *trackLabels) label(track int, theirs string) string {
	key, n := trackLabel{track, protocol.Label(theirs)}, len(t.labels)
	if !t.rooms { // the track is one speaker
		key.label, n = "", track
	}
	if _, ok := t.labels[key]; !ok && n < protocol.MaxLabels { // beyond, a misbehaving service
		t.labels[key] = protocol.SpeakerLabel(n)
	}
	return t.labels[key]
}

// track is the track of a label of the session.
func (t *trackLabels) track(label string) int {
	for key, ours := range t.labels {
		if ours == label {
			return key.track
		}
	}
	return 0
}

// event is an event of a track in the session; without rooms, turns of a track that
// overlap or touch in time are one.
func (t *trackLabels) event(track int, e protocol.Event) (protocol.Event, bool) {
	if !e.IsTurn() {
		return e, true
	}
	key := trackLabel{track, protocol.Label(e.Speaker)}
	if !t.rooms {
		starts := e.Type == protocol.TypeSpeakerStart
		if t.open[key] == starts || starts && len(t.open) >= protocol.MaxLabels*len(t.speaks)+protocol.MaxLabels {
			return e, false
		}
		if starts {
			t.open[key] = true
			t.speaks[track]++
		} else {
			delete(t.open, key)
			t.speaks[track]--
		}
		if n := t.speaks[track]; starts && n > 1 || !starts && n > 0 {
			return e, false // the track's turn began before, or goes on
		}
	}
	label := t.label(track, e.Speaker)
	if label == "" {
		return e, false
	}
	return e.Moved(e.Timestamp, label), true
}
