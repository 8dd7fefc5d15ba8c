package client

import (
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
			if !r.pace(s, n) {
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
			case <-s.aborted:
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
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.aborted:
			t.Stop()
			return false
		}
	}
	return true
}
