package conform

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hubbub/protocol"
)

var mediaRules = []Rule{
	{Name: "media/pattern", Expected: "a url other than media:// followed by letters, digits, '-', '_', '.' or '/' gets 400, a ValidationErrorResponse", Section: "Media locations", check: func(p *prober) string {
		var bodies []string
		for _, bad := range []string{"", "media://", "x", "http://x", "MEDIA://x", "media:/x", " media://x", "media://a b", "media://a?b", "media://a%20b", "media://\u00e4", "media://x\n"} {
			bodies = append(bodies, locationBody(bad))
		}
		return p.expectInvalid("/v1/media/output", bodies...)
	}},
	{Name: "media/required", Expected: "a body without the string url gets 400, a ValidationErrorResponse", Section: "Media locations", check: func(p *prober) string {
		return p.expectInvalid("/v1/media/output", "", "{}", `{"url":null}`, `{"url":5}`, `{"url":["media://x"]}`, "[]", "{")
	}},
	{Name: "media/length", Expected: "a url of 255 characters is accepted, one of 256 gets 400", Section: "Media locations", check: func(p *prober) string {
		name := func(n int) string {
			return "media://" + p.prefix + "/" + strings.Repeat("x", n-len("media:///")-len(p.prefix))
		}
		unknown := p.do(media("output", "media://"+p.prefix+"/nothing")) // neither is stored
		r := p.do(media("output", name(protocol.MaxMediaURL)))
		if r.status != unknown.status {
			differs("with 255 characters: %s; a shorter one got %d", r, unknown.status)
		}
		r = p.do(media("output", name(protocol.MaxMediaURL+1)))
		if err := try(func() { r.expectInvalid() }); err != nil {
			differs("with 256 characters: %v", err)
		}
		return "255 accepted, 256 refused"
	}},
	{Name: "media/output", Expected: "POST /v1/media/output for a stored object returns 201 with a url", Section: "Get a download address", check: func(p *prober) string {
		o := found.of(p)
		o.out.expect(http.StatusCreated)
		o.out.text("url")
		return "201"
	}},
	{Name: "media/not-stored", Expected: "POST /v1/media/output without a stored object returns 404, an ApiError", Section: "Get a download address", Chosen: true, check: func(p *prober) string {
		return p.expectError(http.StatusNotFound, media("output", "media://"+p.prefix+"/nothing/here"))
	}},
	{Name: "media/input", Expected: "POST /v1/media/input returns 201 with an absolute address", Section: "Get an upload address", Chosen: true, check: func(p *prober) string {
		o := asked.of(p)
		o.in.expect(http.StatusCreated)
		o.in.text("url")
		return "201"
	}},
	{Name: "media/input-body", Expected: "POST /v1/media/input returns 400, a ValidationErrorResponse, to an invalid media location", Section: "Get an upload address", Chosen: true, check: func(p *prober) string {
		needs(p, asked.of, "media/input") // uploads may not be offered
		return p.expectInvalid("/v1/media/input", "{}", `{"url":5}`, locationBody("http://x"), locationBody("media://a b"),
			locationBody("media://"+strings.Repeat("x", protocol.MaxMediaURL)), "[]", "{")
	}},
	{Name: "media/put", Expected: "the upload address accepts the bytes by PUT, without credential or content type, and returns 200 with the location", Section: "Upload an object", Chosen: true, check: func(p *prober) string {
		o := uploaded.of(p)
		o.put.expect(http.StatusOK)
		if at := o.put.text("url")["url"]; at != o.location {
			differs("%s", o.put)
		}
		return fmt.Sprintf("%d bytes: %d", len(o.content), o.put.status)
	}},
	{Name: "media/get", Expected: "the download address returns the same bytes by GET, without credential", Section: "Download an object", Chosen: true, check: func(p *prober) string {
		o := downloaded.of(p)
		if string(o.get.body) != o.content {
			differs("%d bytes were stored, and %d different ones were returned", len(o.content), len(o.get.body))
		}
		return fmt.Sprintf("%d bytes were returned", len(o.get.body))
	}},
	{Name: "media/headers", Expected: "a download has ETag, the SHA-256 of the object, Last-Modified, Content-Disposition: attachment and X-Content-Type-Options: nosniff", Section: "Download an object", Chosen: true, check: func(p *prober) string {
		o := needs(p, downloaded.of, "media/get")
		expectHeaders(o.get, o)
		return o.get.header.Get("ETag")
	}},
	{Name: "media/head", Expected: "HEAD on the download address returns the same headers, without the bytes", Section: "Download an object", Chosen: true, check: func(p *prober) string {
		o := needs(p, downloaded.of, "media/get")
		r := p.do(request{method: "HEAD", address: o.from})
		r.expect(http.StatusOK)
		expectHeaders(r, o)
		if n := r.header.Get("Content-Length"); n != strconv.Itoa(len(o.content)) {
			differs("%s, with Content-Length %q", r, n)
		}
		return "200"
	}},
	{Name: "media/range", Expected: "Range returns 206 with these bytes, or 416 if the object does not have them", Section: "Download an object", Chosen: true, check: func(p *prober) string {
		o := needs(p, downloaded.of, "media/get")
		n := len(o.content)
		for _, part := range [][2]string{{"bytes=7-13", o.content[7:14]}, {"bytes=-5", o.content[n-5:]}, {fmt.Sprintf("bytes=%d-", n-3), o.content[n-3:]}} {
			ranges, want := part[0], part[1]
			r := p.do(request{method: "GET", address: o.from, header: [2]string{"Range", ranges}})
			r.request += " with Range: " + ranges
			r.expect(http.StatusPartialContent)
			if string(r.body) != want || r.header.Get("Content-Range") == "" {
				differs("%s, with Content-Range %q", r, r.header.Get("Content-Range"))
			}
		}
		beyond := fmt.Sprintf("bytes=%d-", n)
		r := p.do(request{method: "GET", address: o.from, header: [2]string{"Range", beyond}})
		r.request += " with Range: " + beyond
		r.expectAPIError(http.StatusRequestedRangeNotSatisfiable)
		return "206 and 416"
	}},
	{Name: "media/unchanged", Expected: "If-None-Match with the ETag returns 304", Section: "Download an object", Chosen: true, check: func(p *prober) string {
		o := needs(p, downloaded.of, "media/get")
		tag := o.get.header.Get("ETag")
		if tag == "" {
			skipped("it needs an ETag: see media/headers")
		}
		p.do(request{method: "GET", address: o.from, header: [2]string{"If-None-Match", tag}}).expect(http.StatusNotModified)
		return "304"
	}},
	{Name: "media/one-method", Expected: "an address is valid for one object and one method, that of an upload for one upload", Section: "Media addresses", Chosen: true, check: func(p *prober) string {
		o := needs(p, downloaded.of, "media/get")
		for _, wrong := range []request{
			{method: "GET", address: o.to}, {method: "DELETE", address: o.to}, {method: "PUT", address: o.to, body: "overwritten"},
			{method: "PUT", address: o.from, body: "overwritten"}, {method: "DELETE", address: o.from},
		} {
			r := p.do(wrong)
			if r.status < 400 {
				made := "one upload"
				if wrong.address == o.from {
					made = "downloads"
				}
				differs("%s, which is valid for %s, returned %d", r.request, made, r.status)
			}
		}
		get := p.do(request{method: "GET", address: o.from})
		if string(get.body) != o.content {
			differs("after that the object had changed")
		}
		return "all other methods are refused"
	}},
	{Name: "media/signed", Expected: "a changed address is not valid", Section: "Media addresses", Chosen: true, check: func(p *prober) string {
		o := needs(p, downloaded.of, "media/get")
		// A character in the middle of what follows the host.
		at := strings.LastIndex(o.from, "/") + 1
		at += (len(o.from) - at) / 2
		other := byte('A')
		if o.from[at] == other {
			other = 'B'
		}
		r := p.do(request{method: "GET", address: o.from[:at] + string(other) + o.from[at+1:]})
		if r.status < 400 {
			differs("with one character changed it returned %d", r.status)
		}
		return fmt.Sprintf("with one character changed it returned %d", r.status)
	}},
	{Name: "media/names", Expected: "names such as ../x, a//b and a/./b are not paths: each is an object of its own", Section: "Media locations", check: func(p *prober) string {
		needs(p, downloaded.of, "media/get")
		names := []string{"a/../x", "x", "a//b", "a/b", "a/./b", "../" + p.prefix + "/x", "..", "a/"}
		for _, n := range names {
			o := &object{location: "media://" + p.prefix + "/" + n, content: "the object " + n}
			if err := try(func() { p.upload(o) }); err != nil {
				differs("for the name %s: %v", n, err)
			}
		}
		for _, n := range names {
			got := p.fetch("media://" + p.prefix + "/" + n)
			if got != "the object "+n {
				differs("the object %s is %q, and %q was stored", n, protocol.Clean(got, 60), "the object "+n)
			}
		}
		return fmt.Sprintf("%d names, %d objects", len(names), len(names))
	}},
	{Name: "media/replace", Expected: "a second upload replaces the first", Section: "Upload an object", check: func(p *prober) string {
		needs(p, downloaded.of, "media/get")
		at := "media://" + p.prefix + "/replaced"
		for _, content := range []string{"first, and longer", "second"} {
			p.store(at, content)
		}
		got := p.fetch(at)
		if got != "second" {
			differs("%q was stored, then %q, and the object is %q", "first, and longer", "second", protocol.Clean(got, 60))
		}
		return "the second upload is returned"
	}},
	{Name: "media/list", Expected: "GET /v1/media lists a stored object with its size and times, 24 to 48 hours apart, and DELETE /v1/media deletes it", Section: "List and delete media", Chosen: true, check: func(p *prober) string {
		location := "media://" + p.prefix + "/listed"
		p.store(location, "0123456789")
		// The location just before it, so that it is the first one of the response.
		before := url.Values{"after": {location[:len(location)-1]}}
		r := p.do(get("/v1/media?" + before.Encode()))
		r.expectSuccess()
		var list protocol.MediaList
		if json.Unmarshal(r.body, &list) != nil || len(list.Media) == 0 || list.Media[0].URL != location || list.Media[0].Size != 10 {
			differs("%s, without the object of 10 bytes at %s", r, location)
		}
		created, err1 := time.Parse(time.RFC3339, list.Media[0].CreatedAt)
		expires, err2 := time.Parse(time.RFC3339, list.Media[0].ExpiresAt)
		if kept := expires.Sub(created); err1 != nil || err2 != nil || kept < 24*time.Hour || kept > 48*time.Hour {
			differs("it lists the object with %+v", list.Media[0])
		}
		deletion := remove("/v1/media?" + url.Values{"url": {location}}.Encode())
		if r = p.do(deletion); r.status != http.StatusNoContent {
			differs("%s to the deletion", r)
		}
		p.expectError(http.StatusNotFound, deletion)
		return "204, then 404"
	}},
	{Name: "media/foreign", Expected: "the same name of another account is another object", Section: "Media locations", check: func(p *prober) string {
		auth := p.other()
		o := needs(p, uploaded.of, "media/put")
		r := p.do(media("output", o.location).with(auth))
		if r.status/100 == 2 { // an address may be given whether something is stored there or not
			r = p.do(request{method: "GET", address: mediaAddress(r)})
		}
		if r.status/100 == 2 && string(r.body) == o.content {
			differs("with the key of another account the object was returned")
		}
		return fmt.Sprint(r.status)
	}},
	{Name: "media/retention", Expected: "media can be read for at least 24 hours after the upload, and is deleted within 48", Section: "Lifetimes", check: func(*prober) string {
		skipped("it takes two days")
		return ""
	}},
}

var resultRules = []Rule{
	{Name: "results/turns", Expected: "when a stream is done, media://live/ID/turns.rttm contains its turns as RTTM, the same as its events", Section: "Results of a stream", Chosen: true, step: conversation, check: func(p *prober) string {
		e, body := p.results("turns.rttm")
		got, err := protocol.ReadRTTM(bytes.NewReader(body))
		if err != nil {
			differs("it is not RTTM: %v", err)
		}
		turns := make([]protocol.Turn, len(got))
		for i, g := range got {
			turns[i] = g.Turn
		}
		return sameTurns(turns, turnsOf(e))
	}},
	{Name: "results/json", Expected: "media://live/ID/turns.json contains them as a JSON list of speaker, start and end", Section: "Results of a stream", Chosen: true, step: conversation, check: func(p *prober) string {
		e, body := p.results("turns.json")
		var turns []protocol.Turn
		if json.Unmarshal(body, &turns) != nil {
			differs("it is not a list of turns: %s", protocol.Clean(string(body), 100))
		}
		return sameTurns(turns, turnsOf(e))
	}},
	{Name: "results/not-yet", Expected: "before a stream is done it has no results: 404, an ApiError", Section: "Results of a stream", Chosen: true, check: func(p *prober) string {
		ids, _ := p.created()
		return p.expectError(http.StatusNotFound, media("output", "media://live/"+ids[1]+"/turns.rttm"))
	}},
}

// sameTurns compares the turns of a file with those of the events.
func sameTurns(got, want []protocol.Turn) string {
	if len(got) != len(want) {
		differs("it has %d turns, and the events have %d", len(got), len(want))
	}
	for i, w := range want {
		const slack = 0.0015 // three digits, twice rounded
		if g := got[i]; g.Speaker != w.Speaker || math.Abs(g.Start-w.Start) > slack || math.Abs(g.End-w.End) > slack {
			differs("its turn %d is %s, and that of the events is %s", i+1, protocol.FormatRTTM("live", g), protocol.FormatRTTM("live", w))
		}
	}
	return fmt.Sprintf("%d turns", len(got))
}

// object is an object of the service, with what happened to it.
type object struct {
	location, content string
	in, put           *response // request for an upload address, upload
	out, get          *response // request for a download address, download
	to, from          string    // the addresses
}

// locationBody is the body with a media location.
func locationBody(location string) string {
	raw, _ := json.Marshal(protocol.MediaLocation{URL: location}) // strings always marshal
	return string(raw)
}

// media is the request for an address, "input" or "output".
func media(operation, location string) request {
	return post("/v1/media/"+operation, locationBody(location))
}

// mediaAddress is the address in a response.
func mediaAddress(r *response) string {
	var at protocol.MediaLocation
	_ = json.Unmarshal(r.body, &at)
	u, err := url.Parse(at.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		differs("%s, without an absolute address in url", r)
	}
	return at.URL
}

// askUpload asks for the upload address of an object.
func (p *prober) askUpload(o *object) {
	o.in = p.do(media("input", o.location))
	if o.in.missing() {
		notOffered("%s: media cannot be uploaded", o.in)
	}
	o.in.expectSuccess()
	o.to = mediaAddress(o.in)
}

// put uploads the content of an object to its address.
func (p *prober) put(o *object) {
	o.put = p.do(request{method: "PUT", address: o.to, body: o.content})
	o.put.expectSuccess()
}

func (p *prober) upload(o *object) {
	p.askUpload(o)
	p.put(o)
}

// store is an upload of another object than the shared one.
func (p *prober) store(location, content string) {
	needs(p, uploaded.of, "media/put")
	p.upload(&object{location: location, content: content})
}

// find asks for the download address of an object.
func (p *prober) find(o *object) {
	o.out = p.do(media("output", o.location))
	o.out.expectSuccess()
	o.from = mediaAddress(o.out)
}

// download downloads an object from its address.
func (p *prober) download(o *object) {
	o.get = p.do(request{method: "GET", address: o.from})
	o.get.expectSuccess()
}

// fetch is what is stored at a location.
func (p *prober) fetch(location string) string {
	o := &object{location: location}
	p.find(o)
	p.download(o)
	return string(o.get.body)
}

// The steps of an object that several rules use: the request for its upload address, its
// upload, the request for its download address, and its download. Each needs the one before.
var (
	asked = share(func(p *prober) *object {
		o := &object{location: "media://" + p.prefix + "/object.bin", content: strings.Repeat("hubbub conform ", 200)}
		p.askUpload(o)
		return o
	})
	uploaded   = share(func(p *prober) *object { o := needs(p, asked.of, "media/input"); p.put(o); return o })
	found      = share(func(p *prober) *object { o := needs(p, uploaded.of, "media/put"); p.find(o); return o })
	downloaded = share(func(p *prober) *object { o := needs(p, found.of, "media/output"); p.download(o); return o })
)

// expectHeaders requires the headers of a download.
func expectHeaders(r *response, o *object) {
	for _, want := range [][2]string{
		{"ETag", fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(o.content)))}, {"Content-Disposition", "attachment"}, {"X-Content-Type-Options", "nosniff"},
	} {
		if got := r.header.Get(want[0]); got != want[1] {
			differs("%s, with %s %q, not %q", r.request, want[0], got, want[1])
		}
	}
	if _, err := http.ParseTime(r.header.Get("Last-Modified")); err != nil {
		differs("%s, with Last-Modified %q", r.request, r.header.Get("Last-Modified"))
	}
}

// results downloads a file of the results of a stream.
func (p *prober) results(file string) (*exchange, []byte) {
	e := conversation.of(p)
	if textOf(e.after, "status") != protocol.StatusDone {
		skipped("the stream is not done: see status/done")
	}
	if len(e.messages) > 0 && len(turnsOf(e)) == 0 {
		skipped("the messages contain no turns: see events/shape")
	}
	o := &object{location: "media://live/" + e.id + "/" + file}
	p.find(o)
	o.out.expect(http.StatusCreated)
	p.download(o)
	return e, o.get.body
}

// turnsOf are the turns that the events of a stream describe.
func turnsOf(e *exchange) []protocol.Turn {
	line := protocol.NewTimeline()
	for _, m := range e.messages {
		line.Apply(m.Event)
	}
	return line.Snapshot().Turns()
}
