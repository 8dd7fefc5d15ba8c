package tui

import (
	"fmt"
	"strconv"
	"time"

	"hubbub/protocol"
)

// wire says how the wire is, then its latest messages; chunks and pings are
// left out: they say that all is as it should be.
func (c *Console) wire(args string) error {
	n := 5
	if args != "" {
		var err error
		if n, err = strconv.Atoi(args); err != nil || n < 1 || n > 1000 {
			return c.say("%s is not a number from 1 to 1000.", args)
		}
	}
	s := c.o.Wire()
	for _, sentence := range wireSentences(s.Status, time.Now()) {
		_ = c.say("%s", sentence)
	}
	var said []string
	for i := s.Entries.Len() - 1; i >= 0 && len(said) < n; i-- {
		e := s.Entries.At(i)
		r := wireRow{record: &e.WireRecord}
		if e.Run.Chunks > 0 {
			r.run = &e.Run
		}
		if !wireMessages.has(r.record, r.run) && !wireFaults.has(r.record, r.run) {
			continue
		}
		text, _ := wireText(r)
		way := map[protocol.Direction]string{protocol.Outgoing: "sent ", protocol.Incoming: "received "}[e.Dir]
		said = append(said, fmt.Sprintf("%s, %s%s: %s.", e.At.Local().Format("15:04:05"), way, e.Kind, text))
	}
	for i := len(said) - 1; i >= 0; i-- { // the newest is said last
		_ = c.say("%s", said[i])
	}
	return c.out.failed()
}

// wireSentences are the state of the wire in words.
func wireSentences(s protocol.WireStatus, now time.Time) (out []string) {
	switch {
	case s.Over && s.End.Fault:
		return append(out, fmt.Sprintf("The stream is over: %s, %s.", s.End.Type, Clean(s.End.Text)))
	case s.Over:
		return append(out, fmt.Sprintf("The stream was closed, %d, %s.", s.End.Code, protocol.CodeMeaning(s.End.Code)))
	case s.Opened.IsZero():
		return append(out, "There is no stream yet.")
	}
	out = append(out, fmt.Sprintf("The stream has been open for %s, %s sent, %s received.", clock(now.Sub(s.Opened).Seconds()),
		count(s.Messages[0], "message"), count(s.Messages[1], "message")))
	if s.Chunks > 0 {
		text := fmt.Sprintf("Audio goes out at %.2f times real time, %s", s.Pace, aheadSegment(s.Ahead).text)
		if s.Queue >= 0 {
			text += ", " + count(int64(s.Queue), "chunk") + " in the queue"
		}
		out = append(out, text+".")
	}
	if s.MaxGap > protocol.WireStall {
		out = append(out, fmt.Sprintf("Warning: no chunk went out for %s within the last seconds.", millisText(s.MaxGap)))
	}
	if late := now.Sub(s.Unanswered); !s.Unanswered.IsZero() && late > latePong {
		out = append(out, fmt.Sprintf("Warning: no answer to a ping for %s.", short(late)))
	} else if s.Ping > 0 {
		out = append(out, fmt.Sprintf("A ping takes %s.", millisText(s.Ping)))
	}
	if t := s.Socket; t != nil {
		out = append(out, fmt.Sprintf("TCP takes %s, %s sent again, %s on the way.", millisText(t.RTT), count(int64(t.Retransmits), "segment"), bytesText(int64(t.Unacked))))
	}
	if s.Lag >= 0 {
		out = append(out, fmt.Sprintf("The last event came %s after its audio, the slowest %s.", millisText(s.Lag), millisText(s.MaxLag)))
	}
	if s.Faults > 0 {
		out = append(out, fmt.Sprintf("%s so far.", count(s.Faults, "fault")))
	}
	return out
}
