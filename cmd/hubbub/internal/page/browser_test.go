package page

import (
	"fmt"
	"regexp"
	"testing"

	"hubbub/protocol"
	"hubbub/protocol/export/browsertest"
	"hubbub/protocol/testkit"
)

// TestPage follows a session in a real browser, with text that is out for harm.
func TestPage(t *testing.T) {
	b := browsertest.Open(t)
	s := newTalk()
	s.title = `</title><script>alert(1)</script>`
	server := serve(t, s)
	b.Resize(1280, 720)
	b.Navigate(server.URL())
	b.Until(`document.title.startsWith("</title>")`)
	s.turn("SPEAKER_00", 1, "")
	b.Until(`document.querySelectorAll("#names li").length === 1 && document.body.classList.contains("wordless")`)
	b.Resize(390, 800) // of a telephone
	b.Until(`(() => { const li = document.querySelector("#names li"), name = li.querySelector("span"); return li.classList.add("now"), name.textContent === "SPEAKER_00" && name.scrollWidth <= name.clientWidth; })()`)
	b.Resize(1280, 720)
	s.turn("SPEAKER_01", 3, `<img src=x onerror=alert(1)> and "more"`)
	s.turn("SPEAKER_02", 5, "صباح الخير")
	b.Until(`document.querySelectorAll("#said li").length === 2 && !document.body.classList.contains("wordless")`)
	testkit.Equal(t, b.Eval(`document.querySelector("#said li span").textContent`), `<img src=x onerror=alert(1)> and "more"`)
	s.line.SetText(protocol.Turn{Speaker: "SPEAKER_00", Start: 1, End: 2, Text: "late, and first"})
	b.Until(`document.querySelector("#said li span").textContent === "late, and first"`)
	// The bars are drawn in the colours of the lanes.
	b.Until(`(() => { const c = document.getElementById("bars"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n > 2000; })()`)
	s.annotate(t, func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename("SPEAKER_00", "Anna") })
	b.Until(`document.querySelector("#said b").textContent === "Anna" && document.querySelector("#names span").textContent === "Anna"`)
	s.annotate(t, func(a protocol.Annotations) (protocol.Annotations, error) { return a.Merge("SPEAKER_01", "SPEAKER_00") })
	b.Until(`document.querySelectorAll("#names li").length === 2 && document.querySelectorAll("#said b")[1].textContent === "Anna"`)

	// Names are beside the words, in any direction.
	s.annotate(t, func(a protocol.Annotations) (protocol.Annotations, error) {
		return a.Rename("SPEAKER_02", "أمينة")
	})
	b.Until(`document.querySelector("#said li:last-child b").textContent === "أمينة" && new Set(Array.from(document.querySelectorAll("#said b"), (e) => { const r = document.createRange(); r.selectNodeContents(e); return Math.round(r.getBoundingClientRect().right); })).size === 1`)

	// The transcript follows the newest line until it is scrolled.
	for i := range 40 {
		s.turn("SPEAKER_02", float64(10+2*i), "one more line")
	}
	inSight := `(() => { const r = document.querySelector("#said").lastChild.getBoundingClientRect(); return r.bottom <= innerHeight && r.top >= 0; })()`
	b.Until(`document.querySelectorAll("#said li").length === 43 && ` + inSight)
	b.Shot("live")
	b.Eval(`document.getElementById("transcript").scrollTop = 0`)
	b.Until(`!document.getElementById("newest").hidden`)
	s.turn("SPEAKER_02", 100, "the last line")
	b.Until(`document.querySelector("#said").lastChild.textContent.includes("the last line")`)
	testkit.Equal(t, b.Eval(`document.getElementById("transcript").scrollTop`), 0.0, "the transcript moved under its reader")
	b.Click("#newest")
	b.Until(inSight)

	// Who has just begun to speak does so until the stream is lost, and again when it is resumed.
	s.line.Apply(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 102, "SPEAKER_02"))
	for _, status := range []struct {
		text string
		now  int
	}{{"", 1}, {"reconnecting", 0}, {"paused", 1}} {
		s.setStatus(status.text)
		b.Until(fmt.Sprintf(`document.getElementById("status").textContent === %q && document.querySelectorAll('#names .now[aria-current="true"]').length === %d`, status.text, status.now))
	}
	s.setStatus("")
	s.line.Apply(protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 103, "SPEAKER_02"))

	captions(t, b, s, server)
	b.Quiet("^" + regexp.QuoteMeta(server.URL()))
	testkit.NoError(t, server.Close())
	b.Until(`document.getElementById("status").textContent === "ended"`)
}

// TestLongSession: on a telephone the times of the timeline do not overlap, and a screen reader reads out what is
// said from now on, not all of it.
func TestLongSession(t *testing.T) {
	b := browsertest.Open(t)
	s := newTalk()
	s.turn("SPEAKER_00", 36000, "ten hours later")
	server := serve(t, s)
	b.Resize(360, 800)
	b.Navigate(server.URL())
	b.Eval(`(() => { const draw = CanvasRenderingContext2D.prototype.fillText; window.times = [];
		CanvasRenderingContext2D.prototype.fillText = function (text, x, y) { times.push([text, x, x + this.measureText(text).width]); draw.call(this, text, x, y); }; })()`)
	b.Until(`(() => { const drawn = times.slice(times.findLastIndex((t, i) => i > 0 && t[1] < times[i - 1][1])); times.length = 0;
		return drawn.length > 1 && drawn[0][0].startsWith("9:59:") && drawn.every((t, i) => i === 0 || t[1] > drawn[i - 1][2]); })()`)
	live := `document.getElementById("said").getAttribute("aria-live")`
	b.Until(`document.querySelectorAll("#said li").length === 1 && ` + live + ` === "off"`)
	s.turn("SPEAKER_00", 36002, "and new")
	b.Until(`document.querySelectorAll("#said li").length === 2 && ` + live + ` === "polite"`)
}

// captions are two lines on a transparent page, whatever the length of a turn.
func captions(t *testing.T, b *browsertest.Browser, s *talk, server *Server) {
	b.Navigate(server.URL() + "?captions")
	b.Until(`document.querySelector("#said")?.lastChild?.textContent.includes("the last line")`)
	for _, id := range []string{"document.documentElement", "document.body"} {
		testkit.Equal(t, b.Eval(`getComputedStyle(`+id+`).backgroundColor`), "rgba(0, 0, 0, 0)", id, "is")
	}
	two := `(() => { const li = document.querySelector("#said li"); return Math.round(said.offsetHeight / parseFloat(getComputedStyle(li).lineHeight)) === 2; })()`
	b.Until(two)
	long := ""
	for range 30 {
		long += "many words of one turn, "
	}
	s.turn("SPEAKER_00", 110, long+"the end")
	b.Until(`document.querySelectorAll("#said li").length === 1 && document.querySelector("#said b").textContent === "Anna" && document.querySelector("#said span").textContent.endsWith("the end") && ` + two)
	b.Shot("captions")
}
