package export

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/export/browsertest"
	"hubbub/protocol/testkit"
)

// tone writes a WAV file of so many seconds of a quiet tone.
func tone(t *testing.T, path string, seconds int) {
	t.Helper()
	n := 16000 * seconds
	b := []byte("RIFF")
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(36+2*n))
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data"...)
	b = le.AppendUint32(b, uint32(2*n))
	for i := range n {
		b = le.AppendUint16(b, uint16(int16(1000*math.Sin(float64(i)/20))))
	}
	testkit.NoError(t, os.WriteFile(path, b, 0o600))
}

// talk is a minute of four people, with names that are out for harm.
func talk(t *testing.T) *Document {
	var turns []protocol.Turn
	at := 0.4
	for i := 0; at < 57; i++ {
		length := 1.2 + math.Mod(float64(i)*1.7, 3.1)
		turns = append(turns, protocol.Turn{Speaker: protocol.SpeakerLabel(i * 7 % 4), Start: at, End: at + length})
		at += length - 0.5 + math.Mod(float64(i)*0.9, 1.3)
	}
	a := annotated(t, rename("SPEAKER_00", "Anna Maria Kowalska-Rodríguez de la Vega"), rename("SPEAKER_03", hostile), rename("SPEAKER_02", "أمينة"),
		bookmark(12.5, "Decision: ship on Friday"), bookmark(41, "</script><img src=x>"))
	return New(Info{Name: "monday", Title: "Monday's meeting", Started: time.Date(2031, 3, 4, 9, 30, 0, 0, time.UTC), Length: 60,
		Gaps: []protocol.Span{{Start: 57.5, End: 60}}}, turns, a)
}

func writePage(t *testing.T, path string, d *Document) {
	t.Helper()
	f := testkit.Must(os.Create(path))(t)
	testkit.NoError(t, Write(f, HTML, d))
	testkit.NoError(t, f.Close())
}

// TestPage uses the page in a real browser, as people with a mouse, a keyboard
// and a screen reader do.
func TestPage(t *testing.T) {
	b := browsertest.Open(t)
	dir := t.TempDir()
	wav := filepath.Join(dir, "a b#1.wav")
	tone(t, wav, 60)
	d := talk(t)
	embedded, beside, silent := filepath.Join(dir, "embedded.html"), filepath.Join(dir, "beside.html"), filepath.Join(dir, "silent.html")
	writePage(t, silent, d)
	d.Audio = &Audio{Path: wav}
	writePage(t, embedded, d)
	d.Audio = &Audio{URL: filepath.Base(wav)}
	writePage(t, beside, d)

	t.Run("embedded", func(t *testing.T) {
		b.T = t
		playsAndListens(b, embedded, len(d.Turns))
		b.Quiet(`^(file:.*embedded\.html|data:audio/wav)`)
	})
	t.Run("beside", func(t *testing.T) {
		b.T = t
		playsAndListens(b, beside, len(d.Turns))
		b.Quiet(`^file:.*(beside\.html|a%20b%231\.wav)$`)
	})
	t.Run("keyboard", func(t *testing.T) { b.T = t; keyboard(b, embedded) })
	t.Run("names", func(t *testing.T) { b.T = t; accessibleNames(b, embedded) })
	t.Run("silent", func(t *testing.T) {
		b.T = t
		b.OpenFile(silent)
		b.Click(`#turns rect:nth-of-type(3)`)
		b.Until(`document.getElementById('clock').textContent !== '0:00.0'`)
		testkit.Equal(t, b.Eval(`document.getElementById('player').hidden`), true, "a page without audio has a player")
		b.Quiet(`^file:.*silent\.html$`)
	})
	t.Run("words", func(t *testing.T) { // in columns, whatever the length and the direction of the names
		b.T = t
		said, page := talk(t), filepath.Join(dir, "words.html")
		for i := range said.Turns {
			said.Turns[i].Text = strings.Repeat("so we ship it, ", 1+i%20)
		}
		writePage(t, page, said)
		b.OpenFile(page)
		for _, what := range []string{".turns .name", ".turns .said"} {
			edges := b.Eval(`[...new Set(Array.from(document.querySelectorAll("` + what + `"), (e) => { const r = document.createRange(); r.selectNodeContents(e); return Math.round(r.getBoundingClientRect().left); }))].join()`)
			if n, err := strconv.Atoi(fmt.Sprint(edges)); err != nil || n < 100 {
				t.Errorf("%s begin at %v", what, edges)
			}
		}
	})
	t.Run("lost", func(t *testing.T) {
		b.T = t
		testkit.NoError(t, os.Remove(wav))
		b.OpenFile(beside)
		b.Until(`!document.getElementById('trouble').hidden && document.getElementById('trouble').textContent.includes('a b#1.wav')`)
	})
	t.Run("looks", func(t *testing.T) { b.T = t; looks(b, embedded) })
}

// playsAndListens clicks a turn, hears it from its start, and sees who speaks.
func playsAndListens(b *browsertest.Browser, page string, turns int) {
	b.T.Helper()
	b.OpenFile(page)
	if n := b.Eval(`document.querySelectorAll('#turns rect').length`); n != float64(turns) {
		b.T.Fatalf("%v turns are drawn, %d there are", n, turns)
	}
	b.Until(`document.getElementById('audio').readyState > 0`)
	if d, _ := b.Eval(`document.getElementById('audio').duration`).(float64); math.Abs(d-60) > 0.01 {
		b.T.Errorf("the audio lasts %v s, want 60", d)
	}
	b.Eval(`document.getElementById('audio').muted = true`)
	b.Click(`#turns rect:nth-of-type(9)`)
	b.Until(`!audio.paused && audio.currentTime >= Number(document.querySelector('#turns rect:nth-of-type(9)').dataset.a)`)
	b.Until(`document.getElementById('play').getAttribute('aria-pressed') === 'true'`)
	b.Until(`document.querySelectorAll('.names li.now').length > 0 && document.getElementById('speaking').textContent !== ''`)
	b.Click("#play")
	b.Until(`audio.paused`)
	at, _ := b.Eval(`audio.currentTime`).(float64)
	start, _ := b.Eval(`Number(document.querySelector('#turns rect:nth-of-type(9)').dataset.a)`).(float64)
	if at < start {
		b.T.Errorf("playing from %v, the turn begins at %v", at, start)
	}
	b.Click(`ul.list li:nth-of-type(2) .go`)
	b.Until(`!audio.paused && audio.currentTime >= 41`)
	b.Eval(`audio.pause(); document.getElementById('speed').value = '2'; document.getElementById('speed').dispatchEvent(new Event('change'))`)
	if b.Eval(`audio.playbackRate`) != 2.0 {
		b.T.Error("the speed does not change")
	}
}

// keyboard walks over the turns without a mouse.
func keyboard(b *browsertest.Browser, page string) {
	b.T.Helper()
	b.OpenFile(page)
	b.Until(`document.getElementById('audio').readyState > 0`)
	b.Eval(`audio.muted = true; document.querySelector('#turns rect[tabindex="0"]').focus()`)
	b.Press("ArrowRight", "ArrowRight", 39)
	b.Press("ArrowRight", "ArrowRight", 39)
	b.Until(`document.activeElement === document.querySelector('#turns rect:nth-of-type(3)')`)
	b.Press("ArrowDown", "ArrowDown", 40)
	b.Until(`document.activeElement.dataset.s === String(Number(document.querySelector('#turns rect:nth-of-type(3)').dataset.s) + 1)`)
	if n := b.Eval(`document.querySelectorAll('#turns [tabindex="0"]').length`); n != 1.0 {
		b.T.Errorf("the turns have %v stops of the tab key, want 1", n)
	}
	b.Press("Enter", "Enter", 13)
	b.Until(`!audio.paused && audio.currentTime >= Number(document.activeElement.dataset.a)`)
	b.Press(" ", "Space", 32)
	b.Until(`audio.paused`)
	b.Press("+", "Equal", 187)
	b.Press("+", "Equal", 187)
	b.Until(`document.getElementById('svg').getBoundingClientRect().width > 3.9 * document.getElementById('scroll').clientWidth`)
	b.Press("0", "Digit0", 48)
	b.Until(`document.getElementById('svg').getBoundingClientRect().width <= document.getElementById('scroll').clientWidth`)
	b.Press("]", "BracketRight", 221)
	b.Until(`[12.5, 41].includes(Math.round(audio.currentTime * 10) / 10)`)
	b.Eval(`document.activeElement.blur()`)
	before, _ := b.Eval(`audio.currentTime`).(float64)
	b.Press("ArrowRight", "ArrowRight", 39)
	b.Until(fmt.Sprintf(`Math.abs(audio.currentTime - %v) < 0.2`, before+5))
	b.Quiet(`^(file:|data:)`)
}

// accessibleNames asks the browser what a screen reader says.
func accessibleNames(b *browsertest.Browser, page string) {
	b.T.Helper()
	b.OpenFile(page)
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
		}
	}
	b.Call("Accessibility.getFullAXTree", nil, &tree)
	var names []string
	for _, n := range tree.Nodes {
		role, name := fmt.Sprint(n.Role.Value), fmt.Sprint(n.Name.Value)
		if n.Ignored || n.Role.Value == nil {
			continue
		}
		if (role == "button" || role == "combobox" || role == "heading" || role == "region") && (n.Name.Value == nil || strings.TrimSpace(name) == "") {
			b.T.Errorf("a %s has no name", role)
		}
		names = append(names, role+" "+name)
	}
	all := strings.Join(names, "\n")
	for _, want := range []string{"button Play", "button Back 5 seconds", "combobox Speed", "region Timeline", "heading Talk time",
		"button Anna Maria Kowalska-Rodríguez de la Vega, 0:00.4 to ", "columnheader Share", "rowheader أمينة", "button " + hostile + ", "} {
		if !strings.Contains(all, want) {
			b.T.Errorf("nothing is announced as %q", want)
		}
	}
	if b.Eval(`document.querySelectorAll('img, iframe, object, embed, link, script[src]').length`) != 0.0 {
		b.T.Error("the page holds elements that came from text")
	}
}

// looks reads the page's colours as they are drawn, dark and light: text
// reaches 4.5:1 on its ground, turns 3:1 on theirs (WCAG 2.2, 1.4.3, 1.4.11).
func looks(b *browsertest.Browser, page string) {
	b.T.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
		b.OpenFile(page)
		b.Shot("page-" + scheme)
		contrast := `((fg, bg) => { const lum = (c) => { const v = c.match(/[\d.]+/g).slice(0, 3).map((x) => { x /= 255; return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4 }); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] }; const a = lum(fg), b = lum(bg); return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) })`
		style := func(selector, property string) string {
			return "getComputedStyle(document.querySelector(" + browsertest.Quote(selector) + ")).getPropertyValue('" + property + "')"
		}
		body, panel := style("body", "background-color"), style(".timeline", "background-color")
		check := func(what, fg, bg string, want float64) {
			b.T.Helper()
			if got, _ := b.Eval(contrast + "(" + fg + "," + bg + ")").(float64); got < want {
				b.T.Errorf("%s, %s: contrast %.2f, want %.1f", scheme, what, got, want)
			}
		}
		check("text", style("body", "color"), body, 4.5)
		check("names", style(".names li", "color"), panel, 4.5)
		check("hints", style(".hint", "color"), body, 4.5)
		check("the axis", style("#axis text", "fill"), panel, 4.5)
		check("the play button", style("#play", "color"), style("#play", "background-color"), 4.5)
		for i := range 4 {
			check(fmt.Sprintf("turns of speaker %d", i), style(fmt.Sprintf("#turns rect.s%d", i), "fill"), panel, 3)
		}
		b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": true}, nil)
		if wide, _ := b.Eval("document.documentElement.scrollWidth").(float64); wide > 390 {
			b.T.Errorf("on a narrow screen the page is %v wide", wide)
		}
		if b.Eval(`(() => { const li = document.querySelector(".names li"), name = li.querySelector("span"); li.className += " now"; name.textContent = "SPEAKER_00"; return name.scrollWidth <= name.clientWidth; })()`) != true {
			b.T.Error("on a narrow screen the label of who speaks is cut off")
		}
		b.Shot("narrow-" + scheme)
		// On paper nothing can be clicked.
		b.Call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
		for _, selector := range []string{"#now", "#play", "#in"} {
			if b.Eval(`document.querySelector("`+selector+`").offsetHeight`) != 0.0 {
				b.T.Errorf("%s is printed", selector)
			}
		}
		if edge := b.Eval(style(".go", "border-top-color")); edge != "rgba(0, 0, 0, 0)" {
			b.T.Errorf("the times are printed with an edge of colour %v", edge)
		}
		b.Call("Emulation.clearDeviceMetricsOverride", nil, nil)
	}
}
