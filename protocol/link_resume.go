package protocol

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"
)

// manage is the manager goroutine.
func (l *Link) manage(s *Stream) {
	var info CloseInfo
	defer func() {
		if p := recover(); p != nil {
			info = ownFault("keeping up", p)
			_ = l.newest().Close()
		}
		l.mu.Lock()
		l.info = info
		l.mu.Unlock()
		l.cut()
		close(l.over)
		close(l.updates)
	}()
	if l.o.Hurry != nil {
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			select {
			case <-l.o.Hurry:
				l.backlog.hurry()
			case <-stop:
			}
		}()
	}
	var loss outage
	for {
		fed := make(chan struct{})
		go func() {
			defer close(fed)
			defer func() {
				if p := recover(); p != nil {
					s.abort(ownFault("feeding", p))
				}
			}()
			l.feed(s)
		}()
		l.relay(s)
		info = s.Wait()
		_ = s.Close() // the pinger
		<-fed
		now := l.client.stream.now()
		if l.o.Limit <= 0 || l.life.Err() != nil || !lossIsWorthRetrying(info, s.hasEnded(), now.Sub(s.lastChunk())) {
			return
		}
		if now.Sub(s.opened) >= settled || loss.began.IsZero() {
			loss = outage{}
		}
		cut := l.lose(s, info)
		next, err := l.resume(&loss, info, cut)
		if err != nil {
			l.deliver(asUpdates(l.splice.abandon())...)
			info.Err = err
			return
		}
		s = next
	}
}

// ownFault is the end of a stream by a fault of our own, which is not tried again.
func ownFault(doing string, p any) CloseInfo {
	return CloseInfo{Reason: ProtocolError, Err: &hinted{hint: "this is a fault of hubbub", err: &networkError{
		text:  Clean(fmt.Sprintf("internal error while %s the stream: %v", doing, p), 200),
		cause: &defect{p, debug.Stack()},
	}}}
}

// lose ends what the lost stream has left open, and tells where.
func (l *Link) lose(s *Stream, info CloseInfo) (cut float64) {
	cut, ends := l.splice.end(l.decided(s))
	l.mu.Lock()
	l.status.Lost, l.status.Failed, l.status.Tries, l.status.Next = info.Err, nil, 0, time.Time{}
	l.status.Losses++
	l.mu.Unlock()
	l.deliver(asUpdates(ends)...)
	l.deliver(Update{Change: &LinkChange{Lost: info.Err}})
	return cut
}

// outage is a time without a stream that lives.
type outage struct {
	began time.Time
	tries int
}

// resume opens a new stream, trying as often as the limit allows, and puts it
// in the place of the old one.
func (l *Link) resume(loss *outage, info CloseInfo, cut float64) (*Stream, error) {
	if info.Reason == Policy && !l.backlog.something(l.life, l.o.Hurry) {
		return nil, info.Err
	}
	now := l.client.stream.now
	if loss.began.IsZero() {
		loss.began = now()
	}
	var failed error
	for last := false; ; {
		loss.tries++
		wait := l.client.stream.backOff(loss.tries, failed)
		if left := l.o.Limit - now().Sub(loss.began); wait > left {
			return nil, l.gaveUp(info, failed, wait, left)
		}
		last = l.pause(loss.tries, failed, wait) || last
		if l.life.Err() != nil {
			return nil, fmt.Errorf("the stream was closed by this side: %w", context.Canceled)
		}
		s, known, at, err := l.open()
		if err == nil {
			l.take(s, known, cut)
			return s, nil
		}
		failed = err
		switch {
		case !refusalIsWorthRetrying(at, err):
			return nil, &hinted{fmt.Errorf("%w: the stream was lost (%w), and the service takes no new one: %w", errGaveUp, info.Err, err), hintOf(err)}
		case last:
			return nil, &hinted{fmt.Errorf("%w: the stream was lost (%w), and so was the last of the audio: %w", errGaveUp, info.Err, err), hintOf(err)}
		}
	}
}

// gaveUp says why there is no further try.
func (l *Link) gaveUp(info CloseInfo, failed error, wait, left time.Duration) error {
	const hint = "turns up to there and the recording are kept; --reconnect says how long a lost stream is tried again"
	var answer *APIError
	switch {
	case failed == nil:
		return withHint(hint, "%w: the stream was lost (%w)", errGaveUp, info.Err)
	case errors.As(failed, &answer) && answer.RetryAfter >= wait && left > 0:
		return withHint(hint, "%w: the stream was lost (%w), and the service wants to be left alone for %s, longer than the %s that are left: %w",
			errGaveUp, info.Err, wait.Round(time.Second), left.Round(time.Second), failed)
	}
	return withHint(hint, "%w in %s: the stream was lost (%w), then: %w", errGaveUp, l.o.Limit, info.Err, failed)
}

// pause waits before a try. It reports whether the user has no time for more.
func (l *Link) pause(tries int, failed error, wait time.Duration) (last bool) {
	l.mu.Lock()
	l.status.Tries, l.status.Failed, l.status.Next = tries, failed, time.Now().Add(wait)
	l.mu.Unlock()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.o.Hurry:
		last = true
	case <-l.life.Done():
	}
	l.mu.Lock()
	l.status.Next = time.Time{}
	l.mu.Unlock()
	return last
}

// open makes one try.
func (l *Link) open() (s *Stream, known bool, at step, err error) {
	ctx, cancel := context.WithTimeout(l.life, openTimeout)
	defer cancel()
	var input map[string]any
	if !l.plain {
		input = map[string]any{"resume": l.ID()}
	}
	live, err := l.client.createStream(ctx, input, l.client.once)
	var answer *APIError
	if !l.plain && errors.As(err, &answer) && answer.Status == http.StatusBadRequest {
		l.plain = true
		live, err = l.client.createStream(ctx, nil, l.client.once)
	}
	if err != nil {
		return nil, false, creating, err
	}
	s, err = l.client.OpenStream(ctx, live.URL)
	if err != nil {
		return nil, false, opening, err
	}
	l.mu.Lock()
	l.id = live.ID
	l.mu.Unlock()
	return s, live.Resumed, opening, nil
}

// take puts a new stream in the place of the old one.
func (l *Link) take(s *Stream, known bool, cut float64) {
	most := -1
	if l.o.Live && !l.o.Unpaced {
		most = int(aheadAtMost / ChunkDuration)
	}
	gap := l.backlog.rewind(cut-preroll.Seconds(), cut, most)
	ends := l.splice.begin(gap.End, known)
	l.mu.Lock()
	was := l.stream.Stats()
	l.earlier.ChunksSent += was.ChunksSent
	l.earlier.BytesSent += was.BytesSent
	l.earlier.EventsReceived += was.EventsReceived
	l.earlier.Undelivered += was.Undelivered
	l.stream = s
	l.status.Lost, l.status.Failed, l.status.Tries = nil, nil, 0
	l.mu.Unlock()
	if l.life.Err() != nil { // Close has closed the old one
		_ = s.Close()
	}
	l.deliver(asUpdates(ends)...)
	l.deliver(Update{Change: &LinkChange{Gap: gap, Known: known}})
}
