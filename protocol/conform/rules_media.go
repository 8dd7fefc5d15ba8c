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
	{Name: "media/pattern", Expected: "a url that is not media:// and letters, digits, '-', '_', '.' or '/' gets 400, a ValidationErrorResponse", Source: specification + " 4.1, 2.1, 8", check: mediaPattern},
	{Name: "media/required", Expected: "a body without the string url gets 400, a ValidationErrorResponse", Source: specification + " 4.1, 2.1", check: mediaRequired},
	{Name: "media/length", Expected: "a url of 255 characters is accepted, one of 256 gets 400", Source: specification + " 2.1, 8", check: mediaLength},
	{Name: "media/output", Expected: "POST /v1/media/output for what is stored answers 201 and a url", Source: specification + " 4.1, 2.2", check: mediaOutput},
	{Name: "media/not-stored", Expected: "POST /v1/media/output for what is not stored answers 404, an ApiError", Source: contract + " 2, POST /v1/media/output", check: mediaNotStored},
	{Name: "media/input", Expected: "POST /v1/media/input answers 201 and an absolute address", Source: contract + " 2, POST /v1/media/input", check: mediaInput},
	{Name: "media/input-body", Expected: "POST /v1/media/input refuses what is no media location with 400, a ValidationErrorResponse", Source: contract + " 2, POST /v1/media/input", check: mediaInputBody},
	{Name: "media/put", Expected: "that address takes the bytes by PUT, without credential or content type", Source: contract + " 2, POST /v1/media/input", check: mediaPut},
	{Name: "media/get", Expected: "the download url gives the same bytes by GET, without credential", Source: contract + " 2, POST /v1/media/output", check: mediaGet},
	{Name: "media/one-method", Expected: "an address opens one object for one method", Source: contract + " 2, media addresses", check: mediaOneMethod},
	{Name: "media/signed", Expected: "an address that was changed opens nothing", Source: contract + " 2, media addresses", check: mediaSigned},
	{Name: "media/names", Expected: "names such as ../x, a//b and a/./b are names and no paths: each is an object of its own", Source: specification + " 2.1", check: mediaNames},
	{Name: "media/replace", Expected: "what is written again replaces what was there", Source: specification + " 8", check: mediaReplace},
	{Name: "media/foreign", Expected: "the same name of another account is another object", Source: specification + " 2.1", check: mediaForeign},
	{Name: "media/retention", Expected: "media can be read for at least 24 hours after the write, and is gone within 48", Source: specification + " 8; " + contract + " 2, media addresses", check: mediaRetention},
}

var resultRules = []Rule{
	{Name: "results/turns", Expected: "when a stream is done, media://live/ID/turns.rttm gives its turns as RTTM, the same as its events", Source: contract + " 2, results", check: resultTurns},
	{Name: "results/json", Expected: "media://live/ID/turns.json gives them as JSON", Source: contract + " 2, results", check: resultJSON},
	{Name: "results/not-yet", Expected: "before a stream is done there are none: 404, an ApiError", Source: contract + " 2, results", check: resultNotYet},
}

// object is something that was stored and asked for again.
type object struct {
	content  string
	in, out  *reply
	put, get *reply
	from, to string // the addresses
}

// locationBody is the body that names a media location.
func locationBody(location string) string {
	raw, err := json.Marshal(protocol.MediaLocation{URL: location})
	if err != nil { // strings always marshal
		panic(err)
	}
	return string(raw)
}

func (p *play) media(ctx context.Context, operation, location, auth string) (*reply, error) {
	return p.do(ctx, ask{method: "POST", path: "/v1/media/" + operation, body: locationBody(location), auth: auth})
}

// addressOf is the address in an answer. Without one there is nothing to do.
func addressOf(r *reply) (string, error) {
	var at protocol.MediaLocation
	u, err := url.Parse("")
	if json.Unmarshal(r.body, &at) == nil {
		u, err = url.Parse(at.URL)
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", differs("%s, which has no absolute address in url", r)
	}
	return at.URL, nil
}

// store puts content at a location; in is the answer that gave the address.
func (p *play) store(ctx context.Context, location, content, auth string) (in, put *reply, to string, err error) {
	if in, err = p.media(ctx, "input", location, auth); err != nil {
		return nil, nil, "", err
	}
	if in.status == http.StatusNotFound || in.status == http.StatusMethodNotAllowed || in.status == http.StatusNotImplemented {
		return nil, nil, "", notOffered("%s: media cannot be uploaded", in)
	}
	if err = in.ok(); err != nil {
		return nil, nil, "", err
	}
	if to, err = addressOf(in); err != nil {
		return nil, nil, "", err
	}
	put, err = p.do(ctx, ask{method: "PUT", address: to, body: content, plain: true})
	return in, put, to, err
}

// fetch asks for a location and gets what is there.
func (p *play) fetch(ctx context.Context, location, auth string) (out, get *reply, from string, err error) {
	if out, err = p.media(ctx, "output", location, auth); err != nil {
		return nil, nil, "", err
	}
	if err = out.ok(); err != nil {
		return nil, nil, "", err
	}
	if from, err = addressOf(out); err != nil {
		return nil, nil, "", err
	}
	get, err = p.do(ctx, ask{method: "GET", address: from, plain: true})
	return out, get, from, err
}

// keep is the object that several rules look at.
func (p *play) keep(ctx context.Context) (*object, error) {
	return p.stored.get(func() (*object, error) {
		o := &object{content: strings.Repeat("hubbub conform ", 200)}
		at := "media://" + p.run + "/object.bin"
		var err error
		if o.in, o.put, o.to, err = p.store(ctx, at, o.content, ""); err != nil {
			return nil, err
		}
		if err := o.put.ok(); err != nil {
			return o, nil // the rule about it says so
		}
		o.out, o.get, o.from, err = p.fetch(ctx, at, "")
		return o, err
	})
}

// kept is the object, of a store and a fetch that went well.
func (p *play) kept(ctx context.Context) (*object, error) {
	o, err := p.keep(ctx)
	if err == nil && o.out == nil {
		err = skipped("it needs something stored, and nothing could be: %s", o.put)
	}
	return o, err
}

func mediaPattern(ctx context.Context, p *play) (string, error) {
	var bodies []string
	for _, bad := range []string{"", "media://", "x", "http://x", "MEDIA://x", "media:/x", " media://x", "media://a b", "media://a?b", "media://a%20b", "media://\u00e4", "media://x\n"} {
		bodies = append(bodies, locationBody(bad))
	}
	return p.refusesBodies(ctx, "/v1/media/output", bodies...)
}

func mediaRequired(ctx context.Context, p *play) (string, error) {
	return p.refusesBodies(ctx, "/v1/media/output", "", "{}", `{"url":null}`, `{"url":5}`, `{"url":["media://x"]}`, "[]", "{")
}

func mediaLength(ctx context.Context, p *play) (string, error) {
	name := func(n int) string {
		return "media://" + p.run + "/" + strings.Repeat("x", n-len("media:///")-len(p.run))
	}
	r, err := p.media(ctx, "output", name(protocol.MaxMediaURL), "")
	if err != nil {
		return "", err
	}
	if r.status == http.StatusBadRequest {
		return "", differs("of 255 characters: %s", r)
	}
	if r, err = p.media(ctx, "output", name(protocol.MaxMediaURL+1), ""); err != nil {
		return "", err
	}
	if err := r.invalid(); err != nil {
		return "", differs("of 256 characters: %v", err)
	}
	return "255 accepted, 256 refused", nil
}

func mediaOutput(ctx context.Context, p *play) (string, error) {
	o, err := p.kept(ctx)
	if err != nil {
		return "", err
	}
	if err := o.out.is(http.StatusCreated); err != nil {
		return "", err
	}
	_, err = o.out.text("url")
	return "201", err
}

func mediaNotStored(ctx context.Context, p *play) (string, error) {
	r, err := p.media(ctx, "output", "media://"+p.run+"/nothing/here", "")
	if err != nil {
		return "", err
	}
	return "404", r.apiError(http.StatusNotFound)
}

func mediaInput(ctx context.Context, p *play) (string, error) {
	o, err := p.keep(ctx)
	if err != nil {
		return "", err
	}
	if err := o.in.is(http.StatusCreated); err != nil {
		return "", err
	}
	_, err = o.in.text("url")
	return "201", err
}

func mediaInputBody(ctx context.Context, p *play) (string, error) {
	if _, err := p.keep(ctx); err != nil { // where it is not offered at all
		return "", err
	}
	return p.refusesBodies(ctx, "/v1/media/input", "{}", `{"url":5}`, locationBody("http://x"), locationBody("media://a b"),
		locationBody("media://"+strings.Repeat("x", protocol.MaxMediaURL)), "[]", "{")
}

func mediaPut(ctx context.Context, p *play) (string, error) {
	o, err := p.keep(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes: %d", len(o.content), o.put.status), o.put.ok()
}

func mediaGet(ctx context.Context, p *play) (string, error) {
	o, err := p.kept(ctx)
	if err != nil {
		return "", err
	}
	if err := o.get.ok(); err != nil {
		return "", err
	}
	if string(o.get.body) != o.content {
		return "", differs("%d bytes were stored, and %d others came back", len(o.content), len(o.get.body))
	}
	return fmt.Sprintf("%d bytes came back", len(o.get.body)), nil
}

func mediaOneMethod(ctx context.Context, p *play) (string, error) {
	o, err := p.kept(ctx)
	if err != nil {
		return "", err
	}
	for _, wrong := range []ask{
		{method: "GET", address: o.to}, {method: "DELETE", address: o.to, none: true},
		{method: "PUT", address: o.from, body: "overwritten"}, {method: "DELETE", address: o.from, none: true},
	} {
		wrong.plain = true
		r, err := p.do(ctx, wrong)
		if err != nil {
			return "", err
		}
		if r.status < 400 {
			made := "upload"
			if wrong.address == o.from {
				made = "download"
			}
			return "", differs("%s made for %s answered %d", r.what, made, r.status)
		}
	}
	get, err := p.do(ctx, ask{method: "GET", address: o.from, plain: true})
	if err != nil {
		return "", err
	}
	if string(get.body) != o.content {
		return "", differs("after that the object was another one")
	}
	return "all others are refused", nil
}

func mediaSigned(ctx context.Context, p *play) (string, error) {
	o, err := p.kept(ctx)
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
	r, err := p.do(ctx, ask{method: "GET", address: o.from[:at] + string(other) + o.from[at+1:], plain: true})
	if err != nil {
		return "", err
	}
	if r.status < 400 {
		return "", differs("with one character changed it answered %d", r.status)
	}
	return fmt.Sprintf("with one character changed it answered %d", r.status), nil
}

func mediaNames(ctx context.Context, p *play) (string, error) {
	names := []string{"a/../x", "x", "a//b", "a/b", "a/./b", "../" + p.run + "/x", "..", "a/"}
	for _, n := range names {
		_, put, _, err := p.store(ctx, "media://"+p.run+"/"+n, "the object "+n, "")
		if err != nil {
			return "", err
		}
		if err := put.ok(); err != nil {
			return "", differs("for the name %s %v", n, err)
		}
	}
	for _, n := range names {
		_, get, _, err := p.fetch(ctx, "media://"+p.run+"/"+n, "")
		if err != nil {
			return "", err
		}
		if string(get.body) != "the object "+n {
			return "", differs("under the name %s there is %q, and %q was stored", n, protocol.Clean(string(get.body), 60), "the object "+n)
		}
	}
	return fmt.Sprintf("%d names, %d objects", len(names), len(names)), nil
}

func mediaReplace(ctx context.Context, p *play) (string, error) {
	at := "media://" + p.run + "/replaced"
	for _, content := range []string{"first, and longer", "second"} {
		_, put, _, err := p.store(ctx, at, content, "")
		if err != nil {
			return "", err
		}
		if err := put.ok(); err != nil {
			return "", err
		}
	}
	_, get, _, err := p.fetch(ctx, at, "")
	if err != nil {
		return "", err
	}
	if string(get.body) != "second" {
		return "", differs("%q was stored, then %q, and there is %q", "first, and longer", "second", protocol.Clean(string(get.body), 60))
	}
	return "the second object is there", nil
}

func mediaForeign(ctx context.Context, p *play) (string, error) {
	if p.OtherKey == "" {
		return "", skipped("it needs a key of another account: --other-key KEY")
	}
	if _, err := p.kept(ctx); err != nil {
		return "", err
	}
	r, err := p.media(ctx, "output", "media://"+p.run+"/object.bin", "Bearer "+p.OtherKey)
	if err != nil {
		return "", err
	}
	return "404", r.apiError(http.StatusNotFound)
}

func mediaRetention(context.Context, *play) (string, error) {
	return "", skipped("it takes two days")
}

// results fetches what a stream left behind.
func (p *play) results(ctx context.Context, file string) (*talk, []byte, error) {
	t, err := p.conversation(ctx)
	if err != nil {
		return nil, nil, err
	}
	if textOf(t.after, "status") != protocol.StatusDone {
		return nil, nil, skipped("the stream is not done: see status/done")
	}
	out, get, _, err := p.fetch(ctx, "media://live/"+t.id+"/"+file, "")
	if err != nil {
		return nil, nil, err
	}
	if err := out.is(http.StatusCreated); err != nil {
		return nil, nil, err
	}
	if err := get.ok(); err != nil {
		return nil, nil, err
	}
	return t, get.body, nil
}

// turnsOf are the turns that a stream's events tell of.
func turnsOf(t *talk) []protocol.Turn {
	line := protocol.NewTimeline()
	for _, h := range t.heard {
		if h.Err == "" {
			line.Apply(h.Event)
		}
	}
	return line.Snapshot().Turns()
}

func resultTurns(ctx context.Context, p *play) (string, error) {
	t, body, err := p.results(ctx, "turns.rttm")
	if err != nil {
		return "", err
	}
	got, err := protocol.ReadRTTM(bytes.NewReader(body))
	if err != nil {
		return "", differs("it is no RTTM: %v", err)
	}
	want := turnsOf(t)
	if len(got) != len(want) {
		return "", differs("it has %d turns, and the events told of %d", len(got), len(want))
	}
	for i, w := range want {
		const slack = 0.0015 // three digits, twice rounded
		if g := got[i].Turn; g.Speaker != w.Speaker || math.Abs(g.Start-w.Start) > slack || math.Abs(g.End-w.End) > slack {
			return "", differs("its turn %d is %s, and the events told of %s", i+1, protocol.FormatRTTM("live", g), protocol.FormatRTTM("live", w))
		}
	}
	return fmt.Sprintf("%d turns", len(got)), nil
}

func resultJSON(ctx context.Context, p *play) (string, error) {
	t, body, err := p.results(ctx, "turns.json")
	if err != nil {
		return "", err
	}
	var list []json.RawMessage
	if !json.Valid(body) {
		return "", differs("it is no JSON: %s", protocol.Clean(string(body), 100))
	}
	// How a turn is written there is not said.
	if json.Unmarshal(body, &list) == nil && len(list) != len(turnsOf(t)) {
		return "", differs("it is a list of %d, and the events told of %d turns", len(list), len(turnsOf(t)))
	}
	return fmt.Sprintf("%d bytes of JSON", len(body)), nil
}

func resultNotYet(ctx context.Context, p *play) (string, error) {
	ids, _, err := p.created(ctx)
	if err != nil {
		return "", err
	}
	r, err := p.media(ctx, "output", "media://live/"+ids[1]+"/turns.rttm", "")
	if err != nil {
		return "", err
	}
	return "404", r.apiError(http.StatusNotFound)
}
