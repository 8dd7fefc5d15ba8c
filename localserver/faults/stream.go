package faults

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

const (
	// writeTimeout bounds each write.
	writeTimeout = 10 * time.Second
	// queuedMessages bounds the messages that wait for their delay; beyond it
	// the stream waits.
	queuedMessages = 256
	// noCloseTimeout is how long the server waits for the close frame of a
	// client that was never sent one.
	noCloseTimeout = 24 * time.Hour
)

var errOver = errors.New("the stream has ended")

// Conn is the socket of a stream, with faults between it and the server. Close
// ends its goroutines: one for each fault that occurs once, and one for the
// delay of messages.
type Conn struct {
	*websocket.Conn
	opened time.Time
	faults []*streamFault
	lag    time.Duration

	chunks int // read so far

	memory     sync.Mutex // of what the faults remember: the reader sends close frames, too
	mu         sync.Mutex // one writer at a time: the server, the delay, a fault
	delayed    chan delayed
	ctx        context.Context // canceled when the faults end; delayed messages are discarded
	end        context.CancelFunc
	goroutines sync.WaitGroup
}

// delayed is what is done after the delay.
type delayed struct {
	due time.Time
	do  func() error
}

// Stream inserts the faults that affect this stream between it and its socket.
// It returns nil if there are none.
func (p Plan) Stream(conn *websocket.Conn) *Conn {
	faults := p.next()
	if len(faults) == 0 {
		return nil
	}
	c := &Conn{Conn: conn, opened: time.Now(), faults: faults}
	c.ctx, c.end = context.WithCancel(context.Background())
	for _, f := range faults {
		switch f.kind.name {
		case "close", "ahead", "reset", "hang-up":
			c.goroutines.Go(func() { c.occur(f.Fault) })
		case "event-lag":
			c.lag += f.wait
		}
	}
	if c.lag > 0 {
		c.delayed = make(chan delayed, queuedMessages)
		c.goroutines.Go(c.deliver)
	}
	pong := c.PingHandler()
	c.SetPingHandler(func(data string) error {
		if c.affected("mute") || c.affected("no-pong") {
			return nil
		}
		return pong(data)
	})
	return c
}

// Linger is how much longer than usual the server has to wait for the client's
// close frame.
func (c *Conn) Linger() time.Duration {
	for _, f := range c.faults {
		if f.kind.name == "never-close" {
			return noCloseTimeout
		}
	}
	return c.lag
}

// begun returns the faults that have begun, with a name unless that is "".
func (c *Conn) begun(name string) (faults []*streamFault) {
	for _, f := range c.faults {
		if (name == "" || f.kind.name == name) && time.Since(c.opened) >= f.after {
			faults = append(faults, f)
		}
	}
	return faults
}

// affected reports whether a fault of a name has begun.
func (c *Conn) affected(name string) bool { return len(c.begun(name)) > 0 }

// occur waits for the time of a fault, and applies it.
func (c *Conn) occur(f Fault) {
	if protocol.Sleep(c.ctx, time.Until(c.opened.Add(f.after))) != nil {
		return
	}
	tcp := protocol.BelowTLS(c.NetConn())
	switch f.kind.name {
	case "close":
		c.sendClose(f.value, "on purpose: --fault "+f.spec)
	case "ahead":
		_ = c.write(websocket.TextMessage, protocol.NewErrorEvent("Audio is more than 5 s ahead of real time").Raw)
		c.sendClose(websocket.ClosePolicyViolation, "too far ahead of real time")
	case "reset":
		if t, ok := tcp.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // so that closing it sends a reset
		}
		_ = tcp.Close()
	case "hang-up":
		_ = tcp.Close()
	}
}

// sendClose sends a close frame.
func (c *Conn) sendClose(code int, text string) {
	_ = c.Conn.WriteControl(websocket.CloseMessage,
		websocket.FormatCloseMessage(code, text[:min(len(text), protocol.MaxCloseText)]), time.Now().Add(writeTimeout))
}

// NextReader returns the next frame of the client, as changed by the faults.
func (c *Conn) NextReader() (int, io.Reader, error) {
	kind, body, err := c.Conn.NextReader()
	if err != nil {
		c.end() // delayed messages cannot be delivered
		return kind, body, err
	}
	if c.affected("mute") {
		// Continue to read below the WebSocket, which sends nothing then.
		_ = c.SetReadDeadline(time.Time{})
		_, err := io.Copy(io.Discard, c.NetConn())
		return 0, nil, errors.Join(errOver, err)
	}
	if kind != websocket.BinaryMessage {
		return kind, body, nil
	}
	c.chunks++
	for _, f := range c.begun("slow-read") {
		if protocol.Sleep(c.ctx, f.wait) != nil {
			return 0, nil, errOver
		}
	}
	for _, f := range c.begun("chunk-size") {
		if c.chunks%f.value == 0 {
			body = io.LimitReader(body, protocol.ChunkBytes-1)
		}
	}
	return kind, body, nil
}

// SetWriteDeadline does nothing: each message has a deadline of its own when it is written.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// WriteMessage sends a message, as changed by the faults.
func (c *Conn) WriteMessage(kind int, raw []byte) error {
	if c.affected("mute") {
		return nil
	}
	out := []message{{kind, raw}}
	c.memory.Lock()
	for _, f := range c.begun("") {
		var next []message
		for _, m := range out {
			next = append(next, f.apply(m)...)
		}
		out = next
	}
	c.memory.Unlock()
	return c.send(out)
}

func (c *Conn) send(out []message) error {
	for _, m := range out {
		if err := c.later(func() error { return c.write(m.kind, m.raw) }); err != nil {
			return err
		}
	}
	return nil
}

// later has deliver do something after the delay, or does it if there is none.
func (c *Conn) later(do func() error) error {
	if c.delayed == nil {
		return do()
	}
	select {
	case c.delayed <- delayed{time.Now().Add(c.lag), do}:
		return nil
	case <-c.ctx.Done():
		return errOver
	}
}

// deliver does what is delayed when it is due.
func (c *Conn) deliver() {
	for {
		select {
		case m := <-c.delayed:
			if protocol.Sleep(c.ctx, time.Until(m.due)) != nil {
				return
			}
			if m.do() != nil {
				c.end()
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// write sends a message, with its own deadline.
func (c *Conn) write(kind int, raw []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	return c.Conn.WriteMessage(kind, raw)
}

// WriteControl sends a ping or a close frame. A close frame waits for all
// messages before it, and some faults suppress it.
func (c *Conn) WriteControl(kind int, data []byte, deadline time.Time) error {
	if c.affected("mute") {
		return nil
	}
	if kind != websocket.CloseMessage {
		return c.Conn.WriteControl(kind, data, deadline)
	}
	var held []message
	c.memory.Lock()
	for _, f := range c.faults {
		held = append(held, f.flush()...)
	}
	c.memory.Unlock()
	if err := c.send(held); err != nil {
		return err
	}
	if c.delayed != nil {
		due := make(chan struct{})
		if err := c.later(func() error { close(due); return nil }); err != nil {
			return err
		}
		select {
		case <-due:
			deadline = time.Now().Add(writeTimeout)
		case <-c.ctx.Done():
			return errOver
		}
	}
	if c.affected("no-close") || c.affected("never-close") {
		return nil
	}
	return c.Conn.WriteControl(kind, data, deadline)
}

// Close ends the connection and the faults.
func (c *Conn) Close() error {
	c.end()
	err := c.Conn.Close()
	c.goroutines.Wait()
	return err
}
