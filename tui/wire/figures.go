package wire

import (
	"fmt"

	"hubbub/tui/canvas"
)

// The help of the wire view has another page, or several: what its figures mean.
//
//	figures 1 of 1, ? closes
//	lag, max           from sending audio to its event; the largest so far
//	ping, no pong for  round trip of a ping; age of the oldest without a pong

// Figures explains the figures in the order in which the view has them.
var Figures = []struct{ Name, Text string }{
	{"sent, received", "messages and bytes of the session, audio included"},
	{"open", "time since this stream was opened"},
	{"lag, max", "from sending audio to its event; the largest so far"},
	{"last reply", "time since anything was received, pongs included"},
	{"pace", "seconds of audio sent per second, over 5 s"},
	{"behind, ahead", "audio sent, compared with the time since the first chunk"},
	{"queue", "chunks of 100 ms that wait to be sent"},
	{"retransmitted", "TCP segments sent more than once"},
	{"ping, no pong for", "round trip of a ping; age of the oldest without a pong"},
	{"fault", "errors, wrong events, refusals and lost streams so far"},
	{"unacknowledged", "bytes without a TCP acknowledgement; not sent: still here"},
	{"RTT", "round-trip time, as TCP measures it"},
	{"lost, unread", "segments that TCP counts as lost; bytes not read yet"},
	{"largest gap", "longest time between chunks, over 5 s; normally 100 ms"},
	{"longest write", "longest time to write a chunk to the system, over 5 s"},
	{"session", "time on the session's clock, which a resume continues"},
}

// figuresLines are the explanations on lines of w cells.
func figuresLines(w int) (figures, texts []string, width int) {
	for _, f := range Figures {
		width = max(width, canvas.Width(f.Name))
	}
	for _, f := range Figures {
		figure := f.Name
		for _, line := range canvas.WrapWords(f.Text, max(w-width-5, 10)) {
			figures, texts = append(figures, figure), append(texts, line)
			figure = ""
		}
	}
	return figures, texts, width
}

// FiguresPages is how many pages the explanations need on a screen of w x h cells.
func FiguresPages(w, h int) int {
	figures, _, _ := figuresLines(w)
	perPage := max(h-1, 1)
	return (len(figures) + perPage - 1) / perPage
}

// DrawFigures draws a page of them, from 1, over the whole screen; keys says how to go on.
func DrawFigures(c *canvas.Canvas, s Screen, page int, keys string) {
	c.Fill(0, 0, s.W, s.H, "", canvas.Plain)
	c.Text(1, 0, s.W-2, fmt.Sprintf("figures %d of %d, %s", page, FiguresPages(s.W, s.H), keys), canvas.Dim)
	figures, texts, width := figuresLines(s.W)
	rows := max(s.H-1, 1)
	for i := (page - 1) * rows; i < min(page*rows, len(texts)); i++ {
		y := 1 + i - (page-1)*rows
		c.Text(1, y, width, figures[i], canvas.Brand.Bold())
		c.Text(1+width+3, y, s.W-width-5, texts[i], canvas.Plain)
	}
}
