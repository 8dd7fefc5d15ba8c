package export

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hubbub/protocol"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageOnlyCSS string

// Theme is the style sheet that all pages of hubbub share: colours, fonts, and the
// classes s0 to s7 of speakers.
//
//go:embed theme.css
var Theme string

var pageCSS = Theme + pageOnlyCSS

//go:embed page.js
var pageJS string

// The drawing of the page, in pixels: an axis on top, a lane for each speaker.
const (
	axisHeight = 24
	laneHeight = 32
	barTop     = 6 // of a turn in its lane
)

// Colours is the number of colours of speakers in Theme; further speakers repeat them.
const Colours = 8

// audioTypes are the media types of the audio that browsers play, by the ending of a file.
var audioTypes = map[string]string{".wav": "audio/wav", ".mp3": "audio/mpeg", ".flac": "audio/flac", ".ogg": "audio/ogg",
	".opus": "audio/ogg", ".m4a": "audio/mp4", ".mp4": "audio/mp4", ".webm": "audio/webm"}

// AudioType is the media type of a file that browsers play, by its ending; "" = of another one.
func AudioType(path string) string { return audioTypes[strings.ToLower(filepath.Ext(path))] }

// page is the data of the template.
type page struct {
	Doc      *Document
	CSS      template.CSS
	JS       template.JS
	Policy   string
	Audio    template.URL
	Facts    []string
	Height   int
	Rows     int
	Overlaps []protocol.Span
	HasText  bool // a turn has text
}

// writeHTML writes one file that refers to no other file except the audio, unless
// that is embedded. Its content security policy forbids everything else.
func writeHTML(w *bufio.Writer, d *Document) error {
	p := page{
		Doc: d, CSS: template.CSS(pageCSS), JS: template.JS(pageJS),
		Facts:    facts(d),
		Rows:     laneHeight * len(d.Speakers),
		Height:   axisHeight + laneHeight*len(d.Speakers),
		Overlaps: overlaps(d.Turns),
		HasText:  slices.ContainsFunc(d.Turns, func(t Turn) bool { return t.Text != "" }),
	}
	media := "'none'"
	embed := d.Audio != nil && d.Audio.Path != ""
	switch {
	case embed:
		p.Audio, media = template.URL("data:"+AudioType(d.Audio.Path)+";base64,"), "data:"
	case d.Audio != nil:
		// A page opened from a folder has no origin: 'self' does not include file:.
		p.Audio, media = template.URL(escapePath(d.Audio.URL)), "'self' file:"
	}
	p.Policy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; media-src %s; base-uri 'none'; form-action 'none'", PolicyHash(pageJS), PolicyHash(pageCSS), media)

	var b bytes.Buffer
	if err := pageTemplate(d.Length).Execute(&b, p); err != nil {
		return err
	}
	if !embed {
		w.Write(b.Bytes())
		return nil
	}
	// Text of the document is escaped and has no quotation mark, so that it cannot contain this.
	here := `src="` + string(p.Audio)
	before, after, found := bytes.Cut(b.Bytes(), []byte(here+`"`))
	if !found {
		return fmt.Errorf("the page has no place for its audio")
	}
	w.Write(before)
	w.WriteString(here)
	if err := embedFile(w, d.Audio.Path); err != nil {
		return err
	}
	w.WriteByte('"')
	w.Write(after)
	return nil
}

// embedFile writes a file in base64, without reading it into memory as a whole.
func embedFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	enc := base64.NewEncoder(base64.StdEncoding, w)
	if _, err := io.Copy(enc, f); err != nil {
		return err
	}
	return enc.Close()
}

// PolicyHash is a source of a content security policy: only this text may run.
func PolicyHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// escapePath converts a path of the file system to a relative URL. "./" keeps a
// folder with a colon from being parsed as a scheme.
func escapePath(path string) string {
	return "./" + strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(filepath.ToSlash(path)))
}

func pageTemplate(length float64) *template.Template {
	length = max(length, 0.001)
	percent := func(s float64) string { return strconv.FormatFloat(math.Round(s/length*1e6)/1e4, 'f', -1, 64) + "%" }
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"colour":   func(i int) int { return i % Colours },
		"pc":       percent,
		"pw":       func(a, b float64) string { return percent(b - a) },
		"top":      func(speaker int) int { return axisHeight + laneHeight*speaker + barTop },
		"tenth":    tenth,
		"plural":   plural,
		"percent":  func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
		"percent1": func(share float64) string { return fmt.Sprintf("%.2f%%", 100*share) },
	}).Parse(pageHTML))
}

// facts are the parts of the line under the title.
func facts(d *Document) []string {
	var f []string
	if !d.Started.IsZero() {
		f = append(f, d.Started.Format("2 January 2006, 15:04 MST"))
	}
	f = append(f, whole(d.Length), plural(len(d.Speakers), "speaker"), plural(len(d.Turns), "turn"))
	if n := len(d.Bookmarks); n > 0 {
		f = append(f, plural(n, "bookmark"))
	}
	if n := len(d.Gaps); n > 0 {
		f = append(f, plural(n, "gap"))
	}
	return f
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// overlaps are the stretches with more than one speaker. turns are in order of their
// starts.
func overlaps(turns []Turn) []protocol.Span {
	type edge struct {
		at float64
		by int
	}
	var edges []edge
	for _, t := range turns {
		edges = append(edges, edge{t.Start, 1}, edge{t.End, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), a.by-b.by) // an end before a start at the same time
	})
	var all []protocol.Span
	open := 0
	for _, e := range edges {
		open += e.by
		switch {
		case e.by == 1 && open == 2:
			all = append(all, protocol.Span{Start: e.at})
		case e.by == -1 && open == 1:
			all[len(all)-1].End = e.at
		}
	}
	return all
}

// whole is m:ss or h:mm:ss.
func whole(s float64) string {
	d := int(s)
	if d >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", d/3600, d/60%60, d%60)
	}
	return fmt.Sprintf("%d:%02d", d/60, d%60)
}

// tenth is whole with tenths of a second, rounded.
func tenth(s float64) string {
	t := int64(math.Round(s * 10))
	return fmt.Sprintf("%s.%d", whole(float64(t/10)), t%10)
}
