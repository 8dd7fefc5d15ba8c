package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

var liveRules = []Rule{
	{Name: "live/create", Expected: "POST /v1/live with an empty object succeeds and returns the strings id and url", Section: "Create a stream", check: liveCreate},
	{Name: "live/success", Expected: "POST /v1/live returns 200", Section: "Create a stream", Chosen: true, check: liveSuccess},
	{Name: "live/id", Expected: "the id of a stream is a UUID, and no two are the same", Section: "Create a stream", Chosen: true, check: liveID},
	{Name: "live/address", Expected: "the address of a stream begins with wss:// and has a token in its query", Section: "Stream token", check: liveAddress},
	{Name: "live/token", Expected: "the token has at least 128 random bits", Section: "Stream token", Chosen: true, check: liveToken},
	{Name: "live/empty-body", Expected: "an empty body is accepted; input is {}", Section: "Create a stream", Chosen: true, check: liveEmptyBody},
	{Name: "live/input", Expected: "any JSON object is accepted and returned as input", Section: "Create a stream", Chosen: true, check: liveInput},
	{Name: "live/array", Expected: "a body that is JSON but not an object gets 400, a ValidationErrorResponse", Section: "Create a stream", Chosen: true, check: liveArray},
	{Name: "live/invalid-json", Expected: "a body that is not JSON gets 400, a ValidationErrorResponse", Section: "Create a stream", Chosen: true, check: liveInvalid},
	{Name: "live/words", Expected: "POST /v1/live takes words; the response has words, which is true, or not", Section: "Words of a stream", Chosen: true, check: liveWords},
	{Name: "live/voiceprints", Expected: "voiceprints and matching that are not valid get 400, a ValidationErrorResponse", Section: "Recognise people", Chosen: true, check: liveVoiceprints},
	{Name: "live/unknown", Expected: "an unknown id gets 404, an ApiError", Section: "Get a stream", Chosen: true, check: liveUnknown},
	{Name: "live/foreign", Expected: "the id of another account's stream gets 404, an ApiError", Section: "Get a stream", Chosen: true, check: liveForeign},
	{Name: "status/shape", Expected: "GET /v1/live/{id} returns id, status, input (an object), startedAt and completedAt", Section: "Get a stream", check: statusShape},
	{Name: "status/success", Expected: "GET /v1/live/{id} returns 200", Section: "Get a stream", Chosen: true, check: statusSuccess},
	{Name: "status/created", Expected: `a stream that was not opened yet is "created"`, Section: "Stream status", check: statusCreated},
	{Name: "status/null", Expected: "startedAt and completedAt are present and null until they happen", Section: "Get a stream", Chosen: true, check: statusNull},
	{Name: "status/running", Expected: `an open stream is "running", with startedAt and without completedAt`, Section: "Stream status", Chosen: true, check: statusRunning},
	{Name: "status/done", Expected: `after end_of_stream and its close a stream is "done", with both times`, Section: "Stream status", Chosen: true, check: statusDone},
	{Name: "status/closed", Expected: `a stream that its client closes with 1000 is "done"`, Section: "Stream status", Chosen: true, check: statusClosed},
	{Name: "status/lost", Expected: `a stream whose connection is lost is "error", with completedAt`, Section: "Stream status", Chosen: true, check: statusLost},
	{Name: "status/times", Expected: "times have the form YYYY-MM-DDThh:mm:ssZ, and completedAt is not before startedAt", Section: "Get a stream", check: statusTimes},
}

// creations are the responses of two creations, for several rules.
func (p *prober) creations(ctx context.Context) ([]*response, error) {
	return p.createdOnce.get(func() (out []*response, err error) {
		for range 2 {
			r, err := p.do(ctx, request{method: "POST", path: "/v1/live", body: "{}"})
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
		return out, nil
	})
}

// created are the ids and addresses of two streams.
func (p *prober) created(ctx context.Context) (ids, addresses []string, err error) {
	made, err := p.creations(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range made {
		if r.status/100 != 2 {
			return nil, nil, skipped("it needs a stream, and none could be created: %s", r)
		}
		var live protocol.LiveStream
		_ = json.Unmarshal(r.body, &live) // rules test what is missing
		ids, addresses = append(ids, live.ID), append(addresses, live.URL)
	}
	return ids, addresses, nil
}

func liveCreate(ctx context.Context, p *prober) (string, error) {
	made, err := p.creations(ctx)
	if err != nil {
		return "", err
	}
	if err := made[0].ok(); err != nil {
		return "", err
	}
	fields, err := made[0].text("id", "url")
	return "id " + fields["id"], err
}

func liveSuccess(ctx context.Context, p *prober) (string, error) {
	made, err := p.creations(ctx)
	if err != nil {
		return "", err
	}
	return "200", made[0].is(http.StatusOK)
}

func liveID(ctx context.Context, p *prober) (string, error) {
	ids, _, err := p.created(ctx)
	if err != nil {
		return "", err
	}
	if !uuid.MatchString(ids[0]) || ids[0] == ids[1] {
		return "", differs("two streams have the ids %q and %q", ids[0], ids[1])
	}
	return ids[0], nil
}

func liveAddress(ctx context.Context, p *prober) (string, error) {
	_, addresses, err := p.created(ctx)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(addresses[0])
	if err != nil || u.Host == "" {
		return "", differs("the url is not an address")
	}
	if !u.Query().Has("token") || u.Query().Get("token") == "" {
		return "", differs("the address %s://%s%s has no token in its query", u.Scheme, u.Host, u.Path)
	}
	if u.Scheme == "ws" && strings.HasPrefix(p.Client.BaseURL(), "http://") {
		return "", skipped("the service is used without TLS (http://)")
	}
	if u.Scheme != "wss" {
		return "", differs("the address begins with %s://", u.Scheme)
	}
	return "wss://" + u.Host + u.Path, nil
}

func liveToken(ctx context.Context, p *prober) (string, error) {
	_, addresses, err := p.created(ctx)
	if err != nil {
		return "", err
	}
	var tokens []string
	for _, a := range addresses {
		u, err := url.Parse(a)
		if err != nil {
			return "", differs("the url is not an address")
		}
		tokens = append(tokens, u.Query().Get("token"))
	}
	// A character of base64 has 6 bits.
	const shortest = (128 + 5) / 6
	if len(tokens[0]) < shortest {
		return "", differs("a token has %d characters: at most %d bits", len(tokens[0]), 6*len(tokens[0]))
	}
	if tokens[0] == tokens[1] {
		return "", differs("two streams have the same token")
	}
	return fmt.Sprintf("%d characters, different for each stream", len(tokens[0])), nil
}

// inputOf is the input in the status of a stream that was created with a body.
func (p *prober) inputOf(ctx context.Context, body string) (string, error) {
	r, err := p.do(ctx, request{method: "POST", path: "/v1/live", body: body})
	if err != nil {
		return "", err
	}
	if err := r.ok(); err != nil {
		return "", err
	}
	var made protocol.LiveStream
	_ = json.Unmarshal(r.body, &made) // rules test what is missing
	fields, err := p.status(ctx, made.ID)
	if err != nil {
		return "", err
	}
	return string(fields["input"]), nil
}

func liveEmptyBody(ctx context.Context, p *prober) (string, error) {
	for _, body := range []string{"", "{}"} {
		input, err := p.inputOf(ctx, body)
		if err != nil {
			return "", err
		}
		if !sameJSON(input, "{}") {
			return "", differs("after the body %q, input is %s", body, input)
		}
	}
	return "input is {}", nil
}

func liveInput(ctx context.Context, p *prober) (string, error) {
	const body = ` {"name":"test","room":{"seats":[1,2.5,null]},"ü":"\u00e9","flag":true} `
	input, err := p.inputOf(ctx, body)
	if err != nil {
		return "", err
	}
	if !sameJSON(input, body) {
		return "", differs("%s was returned as %s", strings.TrimSpace(body), protocol.Clean(input, 200))
	}
	return "it was returned", nil
}

func sameJSON(a, b string) bool {
	norm := func(s string) []byte {
		var v any
		if json.Unmarshal([]byte(s), &v) != nil {
			return []byte("not JSON: " + s)
		}
		out, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return out
	}
	return bytes.Equal(norm(a), norm(b))
}

// expectInvalid requires a 400 with its body for each request body.
func (p *prober) expectInvalid(ctx context.Context, path string, bodies ...string) (string, error) {
	for _, body := range bodies {
		r, err := p.do(ctx, request{method: "POST", path: path, body: body})
		if err != nil {
			return "", err
		}
		if err := r.invalid(); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("400 for %d of them", len(bodies)), nil
}

func liveArray(ctx context.Context, p *prober) (string, error) {
	return p.expectInvalid(ctx, "/v1/live", "[]", `[{}]`, `"text"`, "5", "null", "true")
}

func liveInvalid(ctx context.Context, p *prober) (string, error) {
	return p.expectInvalid(ctx, "/v1/live", "{", "{'a':1}", "{}{}", "audio", "{\"a\":\xff}")
}

func liveWords(ctx context.Context, p *prober) (string, error) {
	r, err := p.do(ctx, request{method: "POST", path: "/v1/live", body: `{"words":true}`})
	if err == nil {
		err = r.ok()
	}
	if err != nil {
		return "", err
	}
	fields, err := r.isJSON()
	switch words, ok := fields["words"]; {
	case err != nil:
		return "", err
	case !ok:
		return "no words", nil
	case string(words) == "true":
		return "words", nil
	}
	return "", differs("%s", r)
}

func liveVoiceprints(ctx context.Context, p *prober) (string, error) {
	return p.expectInvalid(ctx, "/v1/live",
		`{"voiceprints":{}}`, `{"voiceprints":[]}`, `{"voiceprints":["x"]}`, `{"voiceprints":[{"voiceprint":"x"}]}`,
		`{"voiceprints":[{"label":"Sam"}]}`, `{"voiceprints":[{"label":"","voiceprint":"x"}]}`,
		`{"voiceprints":[{"label":"speaker_9","voiceprint":"x"}]}`, `{"voiceprints":[{"label":"Sam","voiceprint":"no voiceprint"}]}`,
		`{"matching":7}`, `{"matching":{"threshold":101}}`, `{"matching":{"exclusive":"yes"}}`)
}

func liveUnknown(ctx context.Context, p *prober) (string, error) {
	for _, id := range []string{unknownID, "no-uuid"} {
		if err := p.refused(ctx, request{method: "GET", path: "/v1/live/" + id}, http.StatusNotFound); err != nil {
			return "", err
		}
	}
	return "404", nil
}

func liveForeign(ctx context.Context, p *prober) (string, error) {
	if p.OtherKey == "" {
		return "", skipped("it needs a key of another account: --other-key KEY")
	}
	ids, _, err := p.created(ctx)
	if err != nil {
		return "", err
	}
	return "404", p.refused(ctx, request{method: "GET", path: "/v1/live/" + ids[0], auth: "Bearer " + p.OtherKey}, http.StatusNotFound)
}

// firstStatus requests the status of a stream that was not opened.
func (p *prober) firstStatus(ctx context.Context) (*response, error) {
	ids, _, err := p.created(ctx)
	if err != nil {
		return nil, err
	}
	return p.do(ctx, request{method: "GET", path: "/v1/live/" + ids[1]})
}

func statusShape(ctx context.Context, p *prober) (string, error) {
	r, err := p.firstStatus(ctx)
	if err != nil {
		return "", err
	}
	if err := r.ok(); err != nil {
		return "", err
	}
	fields, err := r.text("id", "status")
	if err != nil {
		return "", err
	}
	ids, _, _ := p.created(ctx) // firstStatus succeeded with it
	if fields["id"] != ids[1] {
		return "", differs("requested %s: %s", ids[1], r)
	}
	all, _ := r.isJSON() // text succeeded with it
	if _, ok := decode[map[string]any](all, "input"); !ok {
		return "", differs("%s: input is not an object", r)
	}
	for _, name := range []string{"startedAt", "completedAt"} {
		if raw, there := all[name]; there && string(raw) != "null" && textOf(all, name) == "" {
			return "", differs("%s: %s is neither a string nor null", r, name)
		}
	}
	return r.excerpt(), nil
}

func statusSuccess(ctx context.Context, p *prober) (string, error) {
	r, err := p.firstStatus(ctx)
	if err != nil {
		return "", err
	}
	return "200", r.is(http.StatusOK)
}

func statusCreated(ctx context.Context, p *prober) (string, error) {
	r, err := p.firstStatus(ctx)
	if err != nil {
		return "", err
	}
	fields, err := r.isJSON()
	if err == nil && textOf(fields, "status") != protocol.StatusCreated {
		err = differs("%s", r)
	}
	return "created", err
}

func statusNull(ctx context.Context, p *prober) (string, error) {
	r, err := p.firstStatus(ctx)
	if err != nil {
		return "", err
	}
	fields, err := r.isJSON()
	if err != nil {
		return "", err
	}
	for _, name := range []string{"startedAt", "completedAt"} {
		if string(fields[name]) != "null" {
			return "", differs("before it was opened: %s", r)
		}
	}
	return "both are null", nil
}

func statusRunning(ctx context.Context, p *prober) (string, error) {
	e, err := p.conversation(ctx)
	if err != nil {
		return "", err
	}
	if e.during == nil {
		return "", skipped("the conversation ended too early: %s", e.end)
	}
	return statusIs(e.during, protocol.StatusRunning, false)
}

func statusDone(ctx context.Context, p *prober) (string, error) {
	e, err := p.conversation(ctx)
	if err != nil {
		return "", err
	}
	return statusIs(e.after, protocol.StatusDone, true)
}

// statusIs requires a status and startedAt, and that completedAt is present or null.
func statusIs(fields map[string]json.RawMessage, status string, completed bool) (string, error) {
	got := fmt.Sprintf("status %s, startedAt %s, completedAt %s", fields["status"], fields["startedAt"], fields["completedAt"])
	if textOf(fields, "status") != status || textOf(fields, "startedAt") == "" || (textOf(fields, "completedAt") != "") != completed {
		return "", differs("%s", got)
	}
	return got, nil
}

func statusClosed(ctx context.Context, p *prober) (string, error) {
	s, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	defer s.close()
	_ = s.chunk(make([]float32, protocol.ChunkSamples))
	s.closeWith(ctx, websocket.CloseNormalClosure)
	fields, err := p.finalStatus(ctx, s.id)
	if err != nil {
		return "", err
	}
	return statusIs(fields, protocol.StatusDone, true)
}

func statusLost(ctx context.Context, p *prober) (string, error) {
	s, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	_ = s.chunk(make([]float32, protocol.ChunkSamples))
	s.close()
	fields, err := p.finalStatus(ctx, s.id)
	if err != nil {
		return "", err
	}
	return statusIs(fields, protocol.StatusError, true)
}

var instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)

func statusTimes(ctx context.Context, p *prober) (string, error) {
	e, err := p.conversation(ctx)
	if err != nil {
		return "", err
	}
	var at []time.Time
	for _, name := range []string{"startedAt", "completedAt"} {
		text := textOf(e.after, name)
		if text == "" {
			return "", skipped("%s is missing: see status/done", name)
		}
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil || !instant.MatchString(text) {
			return "", differs("%s is %q", name, protocol.Clean(text, 60))
		}
		at = append(at, parsed)
	}
	if at[1].Before(at[0]) {
		return "", differs("completedAt %v is before startedAt %v", at[1], at[0])
	}
	return fmt.Sprintf("%s to %s", textOf(e.after, "startedAt"), textOf(e.after, "completedAt")), nil
}
