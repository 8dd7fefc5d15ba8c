package protocol

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gorilla/websocket"
)

// ping is one ping that was sent.
type ping struct {
	number uint64
	at     time.Time
	sent   int64 // chunks before it
}

// lock waits for the turn to write; unlock must follow unless it fails.
func (s *Stream) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.quit:
		return s.overError()
	case <-s.over:
		return s.overError()
	}
	select { // the turn may have come after the end
	case <-s.quit:
	case <-s.over:
	default:
		return nil
	}
	s.unlock()
	return s.overError()
}

func (s *Stream) unlock() { <-s.writing }

// overError is ErrStreamOver with the reason, as far as it is known.
func (s *Stream) overError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.info
	if info.Reason == 0 && s.abortInfo != nil {
		info = *s.abortInfo
	}
	if info.Err != nil {
		return fmt.Errorf("%w: %w", ErrStreamOver, info.Err)
	}
	return ErrStreamOver
}

// write sends one message. The caller holds the token.
func (s *Stream) write(kind int, payload []byte) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(s.config.writeTimeout))
	err := s.conn.WriteMessage(kind, payload)
	if err == nil {
		return nil
	}
	s.writeFailed(err)
	// The service's own reason, if there is one, tells more than a broken
	// pipe; the reader finds it within writeGrace.
	select {
	case <-s.over:
	case <-s.quit:
	case <-time.After(2 * s.config.writeGrace):
	}
	return s.overError()
}

// writeFailed notes the first failed write and leaves the reader a moment to
// find out why.
func (s *Stream) writeFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeErr != nil {
		return
	}
	s.writeErr = err
	_ = s.conn.SetReadDeadline(time.Now().Add(s.config.writeGrace))
}

// ping sends a ping at once, for a first round trip, one behind the first
// chunk, and then at intervals, so that a silent service is told from a dead
// one. Its pong also says that what was sent before has arrived.
func (s *Stream) ping() {
	defer s.parted.Done()
	defer s.recovered("pinging")
	every := time.NewTicker(s.config.pingEvery)
	defer every.Stop()
	for number := uint64(1); ; number++ {
		s.pinged.Store(&ping{number: number, at: s.config.now(), sent: s.chunksSent()})
		payload := binary.BigEndian.AppendUint64(nil, number)
		s.tap.pinged(number, s.config.now()) // the pong may come before the write returns
		err := s.conn.WriteControl(websocket.PingMessage, payload, time.Now().Add(s.config.writeTimeout))
		var timeout net.Error
		switch {
		case err == nil || errors.Is(err, websocket.ErrCloseSent):
		case errors.As(err, &timeout) && timeout.Timeout():
			// A chunk is stuck in front of it; its own deadline counts.
		default:
			s.writeFailed(err)
		}
		select {
		case <-every.C:
		case <-s.pingNow:
		case <-s.quit:
			return
		case <-s.over:
			return
		}
	}
}
