package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// TestLiveBufferDropsTheOldest fills the buffer of a source that cannot wait:
// put never waits, and what is dropped is counted and marked as a gap.
func TestLiveBufferDropsTheOldest(t *testing.T) {
	b := newSendBuffer(true, nil)
	const dropped = 100
	for seq := range int64(liveBuffer + dropped) {
		testkit.NoError(t, b.put(bufferedChunk{seq: seq}, nil))
	}
	if n, _ := b.waiting(); n != liveBuffer || b.dropped != dropped {
		t.Errorf("%d chunks wait, %d were dropped", n, b.dropped)
	}
	if want := []protocol.Span{{Start: 0, End: dropped * protocol.ChunkDuration.Seconds()}}; !slices.Equal(b.gaps, want) {
		t.Errorf("gaps %v, want %v", b.gaps, want)
	}
	if c := b.take(); c.seq != dropped {
		t.Errorf("chunk %d is sent first, want %d", c.seq, dropped)
	}
}

// TestGapAcrossOlderGaps: a service that is too slow makes many gaps, and a loss makes one across them.
func TestGapAcrossOlderGaps(t *testing.T) {
	b := newSendBuffer(true, nil)
	for seq := range int64(liveBuffer + 10) {
		testkit.NoError(t, b.put(bufferedChunk{seq: seq}, nil))
		if seq > liveBuffer && seq%2 == 0 {
			b.noteSent(b.take().seq)
		}
	}
	if len(b.gaps) < 2 {
		t.Fatalf("gaps %v", b.gaps)
	}
	b.backlog = 1
	gap := b.rewind(0)
	if want := []protocol.Span{{Start: 0, End: gap.End}}; !slices.Equal(b.gaps, want) {
		t.Errorf("gaps %v, want %v", b.gaps, want)
	}
}

// TestWaitingBufferIsFull: a source that can wait is held up while 5 s of audio
// wait, and goes on when a chunk is taken, or the session ends.
func TestWaitingBufferIsFull(t *testing.T) {
	ending := make(chan struct{})
	b := newSendBuffer(false, ending)
	for seq := range int64(waitingBuffer) {
		testkit.NoError(t, b.put(bufferedChunk{seq: seq}, nil))
	}
	over := make(chan struct{})
	time.AfterFunc(20*time.Millisecond, func() { close(over) })
	if err := b.put(bufferedChunk{seq: waitingBuffer}, over); !errors.Is(err, ErrStreamOver) {
		t.Fatalf("put did not wait for room: %v", err)
	}
	put := make(chan error, 1)
	for seq, room := range []func(){func() { b.take() }, func() { close(ending) }} {
		go func() { put <- b.put(bufferedChunk{seq: waitingBuffer + int64(seq)}, nil) }()
		room()
		if err := <-put; err != nil || b.dropped != 0 {
			t.Errorf("%v, %d dropped", err, b.dropped)
		}
	}
}

// TestSentAudioIsBounded: what was sent long ago is not retransmitted, and no gap.
func TestSentAudioIsBounded(t *testing.T) {
	b := newSendBuffer(false, nil)
	for seq := range int64(sentBuffer + 10) {
		testkit.NoError(t, b.put(bufferedChunk{seq: seq}, nil))
		b.noteSent(b.take().seq)
	}
	if len(b.chunks) != sentBuffer || b.chunks[0].seq != 10 || b.dropped != 0 || len(b.gaps) != 0 {
		t.Errorf("%d chunks, %d were dropped, gaps %v", len(b.chunks), b.dropped, b.gaps)
	}
	testkit.Equal(t, b.wouldRewind(3600), chunkTime(sentBuffer+10), "where sending restarts if nothing waits, at")
}

// TestWaitForAudio: a session without audio waits for some, or for its end.
func TestWaitForAudio(t *testing.T) {
	for name, want := range map[string]bool{"a chunk": true, "the end": true, "the user's end": true, "Close": false} {
		synctest.Test(t, func(t *testing.T) {
			ending := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b, got := newSendBuffer(true, ending), make(chan bool, 1)
			go func() { got <- b.waitForAudio(ctx) }()
			if synctest.Wait(); len(got) > 0 {
				t.Fatal("does not wait")
			}
			switch name {
			case "a chunk":
				testkit.NoError(t, b.put(bufferedChunk{}, nil))
			case "the end":
				b.end()
			case "the user's end":
				close(ending)
			case "Close":
				cancel()
			}
			testkit.Equal(t, <-got, want, name)
		})
	}
}

// TestForgetLeavesWhatIsBeingSent: an event may be of a later time than all audio, which
// drops nothing.
func TestForgetLeavesWhatIsBeingSent(t *testing.T) {
	b := newSendBuffer(false, nil)
	for seq := range int64(3) {
		testkit.NoError(t, b.put(bufferedChunk{seq: seq}, nil))
	}
	b.noteSent(b.take().seq)
	b.take()
	b.forget(3600)
	if n, _ := b.waiting(); n != 1 || len(b.chunks) != 2 || b.dropped != 0 || len(b.gaps) != 0 {
		t.Errorf("%d chunks wait of %d, %d were dropped, gaps %v", n, len(b.chunks), b.dropped, b.gaps)
	}
}
