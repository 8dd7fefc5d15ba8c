package rehearsal

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

const (
	// writeLimit bounds a write of a fault's own.
	writeLimit = 10 * time.Second
	// lateMessages is how many messages wait for their lag; then the stream
	// waits.
	lateMessages = 256
	// forever is how long the server waits for the close of a client that was
	// never sent one.
	forever = 24 * time.Hour
)

var errOver = errors.New("the stream is over")

// Conn is the socket of a stream, with faults between it and the server. Its
// goroutines, one for each fault that has its time and one for the lag, end
// with Close.
type Conn struct {
	*websocket.Conn
	began  time.Time
	mutes  []Fault // those that silence it
	ends   []Fault // those that swallow the close
	sizes  []Fault
	slow   []Fault
	events []*eventFault
	lag    time.Duration

	chunks int // read so far

	mu   sync.Mutex // one writer at a time: the server's, the lag's, a fault's
	late chan late
	stop chan struct{}
	once sync.Once
	own  sync.WaitGroup
}

// late is a message on its way, or a close behind it.
type late struct {
	due    time.Time
	kind   int
	raw    []byte
	closed chan error // of a close; nil for a message
}

// Stream stands between a stream and its socket, from its opening on. It is
// nil where no fault strikes this stream.
func (p *Plan) Stream(conn *websocket.Conn) *Conn {
	if p == nil {
		return nil
	}
	faults := p.of(atSocket, atEvents)
	if len(faults) == 0 {
		return nil
	}
	c := &Conn{Conn: conn, began: time.Now(), stop: make(chan struct{})}
	for _, f := range faults {
		switch f.kind.name {
		case "close", "ahead", "reset", "hang-up":
			c.own.Go(func() { c.strike(f) })
		case "mute":
			c.mutes = append(c.mutes, f)
			c.unanswered(f)
		case "no-close", "never-close":
			c.ends = append(c.ends, f)
		case "no-pong":
			c.unanswered(f)
		case "slow-read":
			c.slow = append(c.slow, f)
		case "chunk-size":
			c.sizes = append(c.sizes, f)
		case "event-lag":
			c.lag += f.wait
		default:
			c.events = append(c.events, newEventFault(f))
		}
	}
	if c.lag > 0 {
		c.late = make(chan late, lateMessages)
		c.own.Go(c.deliver)
	}
	return c
}

// unanswered leaves pings without an answer once a fault has begun.
func (c *Conn) unanswered(f Fault) {
	pong := c.PingHandler()
	c.SetPingHandler(func(data string) error {
		if c.begun(f) {
			return nil
		}
		return pong(data)
	})
}

// Linger is how much longer than usual the server has to wait for the client's
// close.
func (c *Conn) Linger() time.Duration {
	for _, f := range c.ends {
		if f.kind.name == "never-close" {
			return forever
		}
	}
	return c.lag
}

// begun tells whether the time of a fault has come.
func (c *Conn) begun(f Fault) bool { return time.Since(c.began) >= f.after }

func (c *Conn) any(faults []Fault) bool {
	for _, f := range faults {
		if c.begun(f) {
			return true
		}
	}
	return false
}

// pause waits, and reports whether the stream goes on.
func (c *Conn) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.stop:
		return false
	}
}

// strike does what a fault does at its time.
func (c *Conn) strike(f Fault) {
	if !c.pause(time.Until(c.began.Add(f.after))) {
		return
	}
	switch f.kind.name {
	case "close":
		c.sendClose(f.value, "on purpose: --fault "+f.spec)
	case "ahead":
		_ = c.write(websocket.TextMessage, protocol.NewErrorEvent("Audio is more than 5 s ahead of real time").Raw)
		c.sendClose(websocket.ClosePolicyViolation, "too far ahead of real time")
	case "reset":
		if t, ok := c.system().(*net.TCPConn); ok {
			_ = t.SetLinger(0) // closing it sends a reset then
		}
		_ = c.system().Close()
	case "hang-up":
		_ = c.system().Close()
	}
}

// sendClose sends a close frame; its text has 123 bytes at most.
func (c *Conn) sendClose(code int, text string) {
	_ = c.Conn.WriteControl(websocket.CloseMessage,
		websocket.FormatCloseMessage(code, text[:min(len(text), 123)]), time.Now().Add(writeLimit))
}

// system is the connection below TLS.
func (c *Conn) system() net.Conn {
	if t, ok := c.NetConn().(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return c.NetConn()
}

// NextReader is the next frame of the client, or what a fault makes of it.
func (c *Conn) NextReader() (int, io.Reader, error) {
	kind, body, err := c.Conn.NextReader()
	if err != nil {
		c.end() // there is nobody left to be late for
		return kind, body, err
	}
	if c.any(c.mutes) {
		// Read on below the WebSocket, where nothing is answered any more.
		_ = c.SetReadDeadline(time.Time{})
		_, err := io.Copy(io.Discard, c.NetConn())
		return 0, nil, errors.Join(errOver, err)
	}
	if kind != websocket.BinaryMessage {
		return kind, body, nil
	}
	c.chunks++
	for _, f := range c.slow {
		if c.begun(f) && !c.pause(f.wait) {
			return 0, nil, errOver
		}
	}
	for _, f := range c.sizes {
		if c.begun(f) && c.chunks%f.value == 0 {
			body = io.LimitReader(body, protocol.ChunkBytes-1)
		}
	}
	return kind, body, nil
}

// SetWriteDeadline is for the server's next message.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.SetWriteDeadline(t)
}

// WriteMessage sends a message, or what the faults make of it.
func (c *Conn) WriteMessage(kind int, raw []byte) error {
	if c.any(c.mutes) {
		return nil
	}
	out := []message{{kind, raw}}
	for _, f := range c.events {
		if !c.begun(f.Fault) {
			continue
		}
		var next []message
		for _, m := range out {
			next = append(next, f.apply(m)...)
		}
		out = next
	}
	return c.send(out)
}

func (c *Conn) send(out []message) error {
	for _, m := range out {
		if err := c.sendLate(late{due: time.Now().Add(c.lag), kind: m.kind, raw: m.raw}); err != nil {
			return err
		}
	}
	return nil
}

// sendLate sends a message at once, or gives it to deliver.
func (c *Conn) sendLate(m late) error {
	if c.late == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.Conn.WriteMessage(m.kind, m.raw)
	}
	select {
	case c.late <- m:
		return nil
	case <-c.stop:
		return errOver
	}
}

// deliver sends what is late when it is due.
func (c *Conn) deliver() {
	for {
		select {
		case m := <-c.late:
			if !c.pause(time.Until(m.due)) {
				return
			}
			if m.closed != nil {
				m.closed <- nil
			} else if c.write(m.kind, m.raw) != nil {
				c.end()
			}
		case <-c.stop:
			return
		}
	}
}

// write is a message of a fault's own making, with its own deadline.
func (c *Conn) write(kind int, raw []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.Conn.SetWriteDeadline(time.Now().Add(writeLimit))
	return c.Conn.WriteMessage(kind, raw)
}

// WriteControl sends a ping or a close. A close waits for all messages before
// it, and some faults swallow it.
func (c *Conn) WriteControl(kind int, data []byte, deadline time.Time) error {
	if c.any(c.mutes) {
		return nil
	}
	if kind != websocket.CloseMessage {
		return c.Conn.WriteControl(kind, data, deadline)
	}
	for _, f := range c.events {
		if err := c.send(f.flush()); err != nil {
			return err
		}
	}
	if c.late != nil {
		sent := make(chan error, 1)
		if err := c.sendLate(late{due: time.Now().Add(c.lag), closed: sent}); err != nil {
			return err
		}
		select {
		case <-sent:
			deadline = time.Now().Add(writeLimit)
		case <-c.stop:
			return errOver
		}
	}
	if c.any(c.ends) {
		return nil
	}
	return c.Conn.WriteControl(kind, data, deadline)
}

// Close ends the connection and the faults.
func (c *Conn) Close() error {
	c.end()
	err := c.Conn.Close()
	c.own.Wait()
	return err
}

// end ends the faults: what waits for its time will not come.
func (c *Conn) end() { c.once.Do(func() { close(c.stop) }) }
