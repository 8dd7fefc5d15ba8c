package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"

	"hubbub/protocol"
)

var mediaRules = []Rule{
	{Name: "media/pattern", Expected: "a url other than media:// followed by letters, digits, '-', '_', '.' or '/' gets 400, a ValidationErrorResponse", Section: "Media locations", check: mediaPattern},
	{Name: "media/required", Expected: "a body without the string url gets 400, a ValidationErrorResponse", Section: "Media locations", check: mediaRequired},
	{Name: "media/length", Expected: "a url of 255 characters is accepted, one of 256 gets 400", Section: "Media locations", check: mediaLength},
	{Name: "media/output", Expected: "POST /v1/media/output for a stored object returns 201 with a url", Section: "Get a download address", check: mediaOutput},
	{Name: "media/not-stored", Expected: "POST /v1/media/output without a stored object returns 404, an ApiError", Section: "Get a download address", Chosen: true, check: mediaNotStored},
	{Name: "media/input", Expected: "POST /v1/media/input returns 201 with an absolute address", Section: "Get an upload address", Chosen: true, check: mediaInput},
	{Name: "media/input-body", Expected: "POST /v1/media/input returns 400, a ValidationErrorResponse, to an invalid media location", Section: "Get an upload address", Chosen: true, check: mediaInputBody},
	{Name: "media/put", Expected: "the upload address accepts the bytes by PUT, without credential or content type", Section: "Upload an object", Chosen: true, check: mediaPut},
	{Name: "media/get", Expected: "the download address returns the same bytes by GET, without credential", Section: "Download an object", Chosen: true, check: mediaGet},
	{Name: "media/one-method", Expected: "an address is valid for one object and one method", Section: "Media addresses", Chosen: true, check: mediaOneMethod},
	{Name: "media/signed", Expected: "a changed address is not valid", Section: "Media addresses", Chosen: true, check: mediaSigned},
	{Name: "media/names", Expected: "names such as ../x, a//b and a/./b are not paths: each is an object of its own", Section: "Media locations", check: mediaNames},
	{Name: "media/replace", Expected: "a second upload replaces the first", Section: "Upload an object", check: mediaReplace},
	{Name: "media/list", Expected: "GET /v1/media lists a stored object with its size, and DELETE /v1/media deletes it", Section: "List and delete media", Chosen: true, check: mediaList},
	{Name: "media/foreign", Expected: "the same name of another account is another object", Section: "Media locations", check: mediaForeign},
	{Name: "media/retention", Expected: "media can be read for at least 24 hours after the upload, and is deleted within 48", Section: "Retention", check: mediaRetention},
}

var resultRules = []Rule{
	{Name: "results/turns", Expected: "when a stream is done, media://live/ID/turns.rttm contains its turns as RTTM, the same as its events", Section: "Results of a stream", Chosen: true, check: resultTurns},
	{Name: "results/json", Expected: "media://live/ID/turns.json contains them as JSON", Section: "Results of a stream", Chosen: true, check: resultJSON},
	{Name: "results/not-yet", Expected: "before a stream is done it has no results: 404, an ApiError", Section: "Results of a stream", Chosen: true, check: resultNotYet},
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
	raw, err := json.Marshal(protocol.MediaLocation{URL: location})
	if err != nil { // strings always marshal
		panic(err)
	}
	return string(raw)
}

// media is the request for an address, "input" or "output".
func media(operation, location string) request {
	return request{method: "POST", path: "/v1/media/" + operation, body: locationBody(location)}
}

// mediaAddress is the address in a response.
func mediaAddress(r *response) (string, error) {
	var at protocol.MediaLocation
	_ = json.Unmarshal(r.body, &at)
	u, err := url.Parse(at.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", differs("%s, without an absolute address in url", r)
	}
	return at.URL, nil
}

// upload uploads the content of an object. The response need not be a success.
func (p *prober) upload(ctx context.Context, o *object) (err error) {
	if o.in, err = p.do(ctx, media("input", o.location)); err != nil {
		return err
	}
	if o.in.status == http.StatusNotFound || o.in.status == http.StatusMethodNotAllowed || o.in.status == http.StatusNotImplemented {
		return notOffered("%s: media cannot be uploaded", o.in)
	}
	if err = o.in.ok(); err != nil {
		return err
	}
	if o.to, err = mediaAddress(o.in); err != nil {
		return err
	}
	o.put, err = p.do(ctx, request{method: "PUT", address: o.to, body: o.content})
	return err
}

// store is an upload that must succeed.
func (p *prober) store(ctx context.Context, location, content string) error {
	o := &object{location: location, content: content}
	if err := p.upload(ctx, o); err != nil {
		return err
	}
	return o.put.ok()
}

// download downloads what is stored at the location of an object.
func (p *prober) download(ctx context.Context, o *object) (err error) {
	if o.out, err = p.do(ctx, media("output", o.location)); err != nil {
		return err
	}
	if err = o.out.ok(); err != nil {
		return err
	}
	if o.from, err = mediaAddress(o.out); err != nil {
		return err
	}
	o.get, err = p.do(ctx, request{method: "GET", address: o.from})
	return err
}

// fetch is the body of a download.
func (p *prober) fetch(ctx context.Context, location string) (string, error) {
	o := &object{location: location}
	if err := p.download(ctx, o); err != nil {
		return "", err
	}
	return string(o.get.body), nil
}

// storeObject uploads and downloads the object of several rules.
func (p *prober) storeObject(ctx context.Context) (*object, error) {
	return p.objectOnce.get(func() (*object, error) {
		o := &object{location: "media://" + p.prefix + "/object.bin", content: strings.Repeat("hubbub conform ", 200)}
		if err := p.upload(ctx, o); err != nil {
			return nil, err
		}
		if err := o.put.ok(); err != nil {
			return o, nil // reported by its rule
		}
		return o, p.download(ctx, o)
	})
}

// storedObject is that object, if its upload succeeded.
func (p *prober) storedObject(ctx context.Context) (*object, error) {
	o, err := p.storeObject(ctx)
	if err == nil && o.out == nil {
		err = skipped("it needs a stored object, and the upload failed: %s", o.put)
	}
	return o, err
}

func mediaPattern(ctx context.Context, p *prober) (string, error) {
	var bodies []string
	for _, bad := range []string{"", "media://", "x", "http://x", "MEDIA://x", "media:/x", " media://x", "media://a b", "media://a?b", "media://a%20b", "media://\u00e4", "media://x\n"} {
		bodies = append(bodies, locationBody(bad))
	}
	return p.expectInvalid(ctx, "/v1/media/output", bodies...)
}

func mediaRequired(ctx context.Context, p *prober) (string, error) {
	return p.expectInvalid(ctx, "/v1/media/output", "", "{}", `{"url":null}`, `{"url":5}`, `{"url":["media://x"]}`, "[]", "{")
}

func mediaLength(ctx context.Context, p *prober) (string, error) {
	name := func(n int) string {
		return "media://" + p.prefix + "/" + strings.Repeat("x", n-len("media:///")-len(p.prefix))
	}
	r, err := p.do(ctx, media("output", name(protocol.MaxMediaURL)))
	if err != nil {
		return "", err
	}
	if r.status == http.StatusBadRequest {
		return "", differs("with 255 characters: %s", r)
	}
	if r, err = p.do(ctx, media("output", name(protocol.MaxMediaURL+1))); err != nil {
		return "", err
	}
	if err := r.invalid(); err != nil {
		return "", differs("with 256 characters: %v", err)
	}
	return "255 accepted, 256 refused", nil
}

func mediaOutput(ctx context.Context, p *prober) (string, error) {
	o, err := p.storedObject(ctx)
	if err != nil {
		return "", err
	}
	if err := o.out.is(http.StatusCreated); err != nil {
		return "", err
	}
	_, err = o.out.text("url")
	return "201", err
}

func mediaNotStored(ctx context.Context, p *prober) (string, error) {
	return "404", p.refused(ctx, media("output", "media://"+p.prefix+"/nothing/here"), http.StatusNotFound)
}

func mediaList(ctx context.Context, p *prober) (string, error) {
	location := "media://" + p.prefix + "/listed"
	if err := p.store(ctx, location, "0123456789"); err != nil {
		return "", err
	}
	// The location just before it, so that it is the first one of the response.
	before := url.Values{"after": {location[:len(location)-1]}}
	r, err := p.do(ctx, request{method: "GET", path: "/v1/media?" + before.Encode()})
	if err == nil {
		err = r.ok()
	}
	if err != nil {
		return "", err
	}
	var list protocol.MediaList
	if json.Unmarshal(r.body, &list) != nil || len(list.Media) == 0 || list.Media[0].URL != location || list.Media[0].Size != 10 {
		return "", differs("%s, without the object of 10 bytes at %s", r, location)
	}
	remove := request{method: "DELETE", path: "/v1/media?" + url.Values{"url": {location}}.Encode()}
	if r, err = p.do(ctx, remove); err == nil && r.status != http.StatusNoContent {
		err = differs("%s to the deletion", r)
	}
	if err != nil {
		return "", err
	}
	return "204, then 404", p.refused(ctx, remove, http.StatusNotFound)
}

func mediaInput(ctx context.Context, p *prober) (string, error) {
	o, err := p.storeObject(ctx)
	if err != nil {
		return "", err
	}
	if err := o.in.is(http.StatusCreated); err != nil {
		return "", err
	}
	_, err = o.in.text("url")
	return "201", err
}

func mediaInputBody(ctx context.Context, p *prober) (string, error) {
	if _, err := p.storeObject(ctx); err != nil { // uploads may not be offered
		return "", err
	}
	return p.expectInvalid(ctx, "/v1/media/input", "{}", `{"url":5}`, locationBody("http://x"), locationBody("media://a b"),
		locationBody("media://"+strings.Repeat("x", protocol.MaxMediaURL)), "[]", "{")
}

func mediaPut(ctx context.Context, p *prober) (string, error) {
	o, err := p.storeObject(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes: %d", len(o.content), o.put.status), o.put.ok()
}

func mediaGet(ctx context.Context, p *prober) (string, error) {
	o, err := p.storedObject(ctx)
	if err != nil {
		return "", err
	}
	if err := o.get.ok(); err != nil {
		return "", err
	}
	if string(o.get.body) != o.content {
		return "", differs("%d bytes were stored, and %d different ones were returned", len(o.content), len(o.get.body))
	}
	return fmt.Sprintf("%d bytes were returned", len(o.get.body)), nil
}

func mediaOneMethod(ctx context.Context, p *prober) (string, error) {
	o, err := p.storedObject(ctx)
	if err != nil {
		return "", err
	}
	for _, wrong := range []request{
		{method: "GET", address: o.to}, {method: "DELETE", address: o.to},
		{method: "PUT", address: o.from, body: "overwritten"}, {method: "DELETE", address: o.from},
	} {
		r, err := p.do(ctx, wrong)
		if err != nil {
			return "", err
		}
		if r.status < 400 {
			made := "upload"
			if wrong.address == o.from {
				made = "download"
			}
			return "", differs("%s, which is valid for the %s, returned %d", r.request, made, r.status)
		}
	}
	get, err := p.do(ctx, request{method: "GET", address: o.from})
	if err != nil {
		return "", err
	}
	if string(get.body) != o.content {
		return "", differs("after that the object had changed")
	}
	return "all other methods are refused", nil
}

func mediaSigned(ctx context.Context, p *prober) (string, error) {
	o, err := p.storedObject(ctx)
	if err != nil {
		return "", err
	}
	// A character in the middle of what follows the host.
	at := strings.LastIndex(o.from, "/") + 1
	at += (len(o.from) - at) / 2
	other := byte('A')
	if o.from[at] == other {
		other = 'B'
	}
	r, err := p.do(ctx, request{method: "GET", address: o.from[:at] + string(other) + o.from[at+1:]})
	if err != nil {
		return "", err
	}
	if r.status < 400 {
		return "", differs("with one character changed it returned %d", r.status)
	}
	return fmt.Sprintf("with one character changed it returned %d", r.status), nil
}

func mediaNames(ctx context.Context, p *prober) (string, error) {
	names := []string{"a/../x", "x", "a//b", "a/b", "a/./b", "../" + p.prefix + "/x", "..", "a/"}
	for _, n := range names {
		o := &object{location: "media://" + p.prefix + "/" + n, content: "the object " + n}
		if err := p.upload(ctx, o); err != nil {
			return "", err
		}
		if err := o.put.ok(); err != nil {
			return "", differs("for the name %s: %v", n, err)
		}
	}
	for _, n := range names {
		got, err := p.fetch(ctx, "media://"+p.prefix+"/"+n)
		if err != nil {
			return "", err
		}
		if got != "the object "+n {
			return "", differs("the object %s is %q, and %q was stored", n, protocol.Clean(got, 60), "the object "+n)
		}
	}
	return fmt.Sprintf("%d names, %d objects", len(names), len(names)), nil
}

func mediaReplace(ctx context.Context, p *prober) (string, error) {
	at := "media://" + p.prefix + "/replaced"
	for _, content := range []string{"first, and longer", "second"} {
		if err := p.store(ctx, at, content); err != nil {
			return "", err
		}
	}
	got, err := p.fetch(ctx, at)
	if err != nil {
		return "", err
	}
	if got != "second" {
		return "", differs("%q was stored, then %q, and the object is %q", "first, and longer", "second", protocol.Clean(got, 60))
	}
	return "the second upload is returned", nil
}

func mediaForeign(ctx context.Context, p *prober) (string, error) {
	if p.OtherKey == "" {
		return "", skipped("it needs a key of another account: --other-key KEY")
	}
	o, err := p.storedObject(ctx)
	if err != nil {
		return "", err
	}
	a := media("output", o.location)
	a.auth = "Bearer " + p.OtherKey
	return "404", p.refused(ctx, a, http.StatusNotFound)
}

func mediaRetention(context.Context, *prober) (string, error) {
	return "", skipped("it takes two days")
}

// results downloads a file of the results of a stream.
func (p *prober) results(ctx context.Context, file string) (*exchange, []byte, error) {
	e, err := p.conversation(ctx)
	if err != nil {
		return nil, nil, err
	}
	if textOf(e.after, "status") != protocol.StatusDone {
		return nil, nil, skipped("the stream is not done: see status/done")
	}
	o := &object{location: "media://live/" + e.id + "/" + file}
	if err := p.download(ctx, o); err != nil {
		return nil, nil, err
	}
	if err := o.out.is(http.StatusCreated); err != nil {
		return nil, nil, err
	}
	return e, o.get.body, o.get.ok()
}

// turnsOf are the turns that the events of a stream describe.
func turnsOf(e *exchange) []protocol.Turn {
	line := protocol.NewTimeline()
	for _, m := range e.messages {
		line.Apply(m.Event)
	}
	return line.Snapshot().Turns()
}

func resultTurns(ctx context.Context, p *prober) (string, error) {
	e, body, err := p.results(ctx, "turns.rttm")
	if err != nil {
		return "", err
	}
	got, err := protocol.ReadRTTM(bytes.NewReader(body))
	if err != nil {
		return "", differs("it is not RTTM: %v", err)
	}
	want := turnsOf(e)
	if len(got) != len(want) {
		return "", differs("it has %d turns, and the events have %d", len(got), len(want))
	}
	for i, w := range want {
		const slack = 0.0015 // three digits, twice rounded
		if g := got[i].Turn; g.Speaker != w.Speaker || math.Abs(g.Start-w.Start) > slack || math.Abs(g.End-w.End) > slack {
			return "", differs("its turn %d is %s, and that of the events is %s", i+1, protocol.FormatRTTM("live", g), protocol.FormatRTTM("live", w))
		}
	}
	return fmt.Sprintf("%d turns", len(got)), nil
}

func resultJSON(ctx context.Context, p *prober) (string, error) {
	e, body, err := p.results(ctx, "turns.json")
	if err != nil {
		return "", err
	}
	var list []json.RawMessage
	if !json.Valid(body) {
		return "", differs("it is not JSON: %s", protocol.Clean(string(body), 100))
	}
	// The form of a turn is not specified.
	if json.Unmarshal(body, &list) == nil && len(list) != len(turnsOf(e)) {
		return "", differs("it is a list of %d, and the events have %d turns", len(list), len(turnsOf(e)))
	}
	return fmt.Sprintf("%d bytes of JSON", len(body)), nil
}

func resultNotYet(ctx context.Context, p *prober) (string, error) {
	ids, _, err := p.created(ctx)
	if err != nil {
		return "", err
	}
	return "404", p.refused(ctx, media("output", "media://live/"+ids[1]+"/turns.rttm"), http.StatusNotFound)
}
