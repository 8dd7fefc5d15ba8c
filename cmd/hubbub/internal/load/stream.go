package load

import (
	"context"
	"errors"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/hint"
)

// maxBehind is how many chunks may wait for a slow connection, as for a
// microphone. Then the oldest are dropped.
const maxBehind = 50

// stream is one stream of a load.
type stream struct {
	Options
	tally *tally
}

// run sends all audio from start on and returns how the stream ended: nil when
// the service closed it normally.
func (s *stream) run(ctx context.Context, start time.Time) error {
	if err := protocol.Sleep(ctx, time.Until(start)); err != nil {
		return err
	}
	live, err := s.Client.CreateStream(ctx, nil)
	if err != nil {
		return err
	}
	if s.Reject(live.URL) {
		return hint.Add(errors.New("the server sends its streams to another machine"), "If that machine's operator agrees, add --yes-remote.")
	}
	conn, err := s.Client.OpenStream(ctx, live.URL)
	if err != nil {
		return err
	}
	defer conn.Close()
	s.tally.count(func(r *Report) { r.Open++ })
	defer s.tally.count(func(r *Report) { r.Open-- })
	received := make(chan struct{})
	go func() {
		defer close(received)
		for e := range conn.Events() {
			if e.IsTurn() && e.Lag >= 0 { // else about audio that was never sent
				s.tally.event(e.Lag)
			}
		}
	}()
	err = s.send(ctx, time.Now(), conn)
	if err != nil {
		conn.Close()
	}
	<-received
	if closed := conn.Wait(); closed.Err != nil && err == nil {
		err = closed.Err
	}
	return err
}

// send paces the chunks by the wall clock from start on: each is sent when its
// last sample would have been spoken. Chunks that are too late are dropped and
// counted. The end of ctx ends the audio; the end of the stream is still sent.
func (s *stream) send(ctx context.Context, start time.Time, conn *client.Stream) error {
	total := int64((len(s.Samples) + protocol.ChunkSamples - 1) / protocol.ChunkSamples)
	padded := make([]float32, protocol.ChunkSamples)
	for seq := int64(0); seq < total; seq++ {
		if oldest := int64(time.Since(start)/protocol.ChunkDuration) - maxBehind; seq < oldest {
			oldest = min(oldest, total-1)
			s.tally.count(func(r *Report) { r.DroppedChunks += oldest - seq })
			seq = oldest
		}
		if protocol.Sleep(ctx, time.Until(start.Add(time.Duration(seq+1)*protocol.ChunkDuration))) != nil {
			break
		}
		chunk := s.Samples[seq*protocol.ChunkSamples:]
		if len(chunk) >= protocol.ChunkSamples {
			chunk = chunk[:protocol.ChunkSamples]
		} else {
			copy(padded, chunk)
			chunk = padded
		}
		if err := conn.Send(seq, chunk); err != nil {
			return err
		}
	}
	return conn.EndOfStream()
}
