package client

import (
	"os"
	"time"

	"hubbub/protocol"
)

// sendBuffered sends what waits to one stream until all is sent or the stream is
// over.
func (r *ResilientStream) sendBuffered(s *Stream) {
	for n := int64(0); ; {
		waiting, ended := r.buffer.waiting()
		switch {
		case waiting > 0:
			if !s.awaitAcks() || !r.pace(s, n) {
				return
			}
			c := r.buffer.take()
			if s.Send(c.seq, c.samples) != nil {
				return
			}
			n++
			r.buffer.noteSent(c.seq)
		case ended:
			if s.EndOfStream() == nil {
				r.endOnce.Do(func() { close(r.endSent) }) // another stream may have sent it
			}
			return
		default:
			select {
			case <-r.buffer.added:
			case <-s.ctx.Done():
				return
			}
		}
	}
}

// pace waits until the n-th chunk of a stream may be sent; false when the stream
// is over. Real time is counted from when the service is known to have received
// the first chunk, which may have taken long.
func (r *ResilientStream) pace(s *Stream, n int64) bool {
	for !r.o.Unpaced && time.Duration(n+1)*protocol.ChunkDuration > maxAhead {
		sending, now := s.sending(), time.Now()
		first := sending.firstAcked
		if at := sending.firstBegun.Add(ackTimeout); first.IsZero() && now.After(at) {
			first = at
		}
		wait := 20 * time.Millisecond
		if !first.IsZero() {
			wait = time.Duration(n+1)*protocol.ChunkDuration - maxAhead - now.Sub(first)
		}
		if wait <= 0 {
			break
		}
		if protocol.Sleep(s.ctx, wait) != nil {
			return false
		}
	}
	return true
}

// maxUnacked is how many chunks may be unacknowledged: with pings every 2 s, more than a service in real time has, and
// far less than the buffers of the system. When these are full, TCP may deliver nothing for a minute.
const maxUnacked = 50

// awaitAcks waits until less than maxUnacked is unacknowledged; false when the stream is over. A service
// that answers no ping behind its first chunk is not waited for, nor one that has reported about audio behind a ping that it
// has not answered: it reads more than its answers say.
func (s *Stream) awaitAcks() bool {
	limit := time.NewTimer(0)
	defer limit.Stop()
	for {
		s.mu.Lock()
		unacked, wait, answers := s.sent-s.acked, s.config.writeTimeout+s.config.patience, s.acked > 0
		if !answers {
			wait = ackTimeout - time.Since(s.firstBegun)
		}
		unanswered := len(s.pings) > 0 && s.decided > float64(s.pings[0].sent)*protocol.ChunkDuration.Seconds()
		pinged := s.beforePing == s.sent
		s.mu.Unlock()
		if unacked < maxUnacked || wait <= 0 || unanswered {
			return true
		}
		if !pinged { // else the acknowledgement comes a ping later than it could
			notify(s.pingNow)
		}
		limit.Reset(wait)
		select {
		case <-s.acks:
		case <-s.ctx.Done():
			return false
		case <-limit.C:
			if answers {
				s.writeFailed(os.ErrDeadlineExceeded)
				return false
			}
		}
	}
}
