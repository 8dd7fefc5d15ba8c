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
	{Name: "live/create", Expected: "POST /v1/live with an empty object succeeds and answers the strings id and url", Source: specification + " 4.2, 2.3", check: liveCreate},
	{Name: "live/success", Expected: "POST /v1/live answers 200", Source: contract + " 2, success codes", check: liveSuccess},
	{Name: "live/id", Expected: "the id of a stream is a UUID, and no two are the same", Source: contract + " 2, id", check: liveID},
	{Name: "live/address", Expected: "the address of a stream begins with wss:// and has a token in its query", Source: specification + " 4.5, 5", check: liveAddress},
	{Name: "live/token", Expected: "the token has at least 128 random bits", Source: contract + " 2, stream token", check: liveToken},
	{Name: "live/empty-body", Expected: "an empty body is accepted; input is {}", Source: contract + " 2, POST /v1/live", check: liveEmptyBody},
	{Name: "live/input", Expected: "any JSON object is accepted and comes back as input", Source: contract + " 2, POST /v1/live", check: liveInput},
	{Name: "live/array", Expected: "a body that is JSON and no object gets 400, a ValidationErrorResponse", Source: contract + " 2, POST /v1/live", check: liveArray},
	{Name: "live/invalid-json", Expected: "a body that is no JSON gets 400, a ValidationErrorResponse", Source: contract + " 2, POST /v1/live", check: liveInvalid},
	{Name: "live/unknown", Expected: "an unknown id gets 404, an ApiError", Source: contract + " 2, id", check: liveUnknown},
	{Name: "live/foreign", Expected: "the id of another account's stream gets 404, an ApiError", Source: contract + " 2, id", check: liveForeign},
	{Name: "status/shape", Expected: "GET /v1/live/{id} answers id, status, input (an object), startedAt and completedAt", Source: specification + " 4.3, 2.4", check: statusShape},
	{Name: "status/success", Expected: "GET /v1/live/{id} answers 200", Source: contract + " 2, success codes", check: statusSuccess},
	{Name: "status/created", Expected: `a stream that was not opened yet is "created"`, Source: specification + " 2.4, 3", check: statusCreated},
	{Name: "status/null", Expected: "startedAt and completedAt are present and null until they happen", Source: contract + " 2, status", check: statusNull},
	{Name: "status/running", Expected: `an open stream is "running", with startedAt and without completedAt`, Source: contract + " 2, status", check: statusRunning},
	{Name: "status/done", Expected: `after end_of_stream and its close a stream is "done", with both times`, Source: contract + " 2, status and connection lost", check: statusDone},
	{Name: "status/left", Expected: `a stream that its client closes with 1000 is "done"`, Source: contract + " 2, connection lost", check: statusLeft},
	{Name: "status/lost", Expected: `a stream whose connection is lost is "error", with completedAt`, Source: contract + " 2, connection lost", check: statusLost},
	{Name: "status/times", Expected: "times have the form YYYY-MM-DDThh:mm:ssZ, and completedAt is not before startedAt", Source: specification + " 2.4", check: statusTimes},
}

// makeStream creates a stream with a body, and looks at nothing.
func (p *play) makeStream(ctx context.Context, body string) (*reply, protocol.LiveStream, error) {
	var made protocol.LiveStream
	r, err := p.do(ctx, ask{method: "POST", path: "/v1/live", body: body})
	if err == nil {
		_ = json.Unmarshal(r.body, &made) // what is missing is for the rules
	}
	return r, made, err
}

// creations are two streams that several rules look at.
func (p *play) creations(ctx context.Context) ([]*reply, error) {
	return p.made.get(func() (out []*reply, err error) {
		for range 2 {
			r, _, err := p.makeStream(ctx, "{}")
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
		return out, nil
	})
}

// created are the fields of both, of a creation that went well.
func (p *play) created(ctx context.Context) (ids, addresses []string, err error) {
	made, err := p.creations(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range made {
		if r.status/100 != 2 {
			return nil, nil, skipped("it needs a stream, and none could be created: %s", r)
		}
		var live protocol.LiveStream
		_ = json.Unmarshal(r.body, &live)
		ids, addresses = append(ids, live.ID), append(addresses, live.URL)
	}
	return ids, addresses, nil
}

func liveCreate(ctx context.Context, p *play) (string, error) {
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

func liveSuccess(ctx context.Context, p *play) (string, error) {
	made, err := p.creations(ctx)
	if err != nil {
		return "", err
	}
	return "200", made[0].is(http.StatusOK)
}

func liveID(ctx context.Context, p *play) (string, error) {
	ids, _, err := p.created(ctx)
	if err != nil {
		return "", err
	}
	if !uuid.MatchString(ids[0]) || ids[0] == ids[1] {
		return "", differs("two streams had the ids %q and %q", ids[0], ids[1])
	}
	return ids[0], nil
}

func liveAddress(ctx context.Context, p *play) (string, error) {
	_, addresses, err := p.created(ctx)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(addresses[0])
	if err != nil || u.Host == "" {
		return "", differs("the url is no address")
	}
	if !u.Query().Has("token") || u.Query().Get("token") == "" {
		return "", differs("the address %s://%s%s has no token in its query", u.Scheme, u.Host, u.Path)
	}
	if u.Scheme == "ws" && strings.HasPrefix(p.Client.BaseURL(), "http://") {
		return "", skipped("the service is asked without TLS (http://), and so its streams are, too")
	}
	if u.Scheme != "wss" {
		return "", differs("the address begins with %s://", u.Scheme)
	}
	return "wss://" + u.Host + u.Path, nil
}

func liveToken(ctx context.Context, p *play) (string, error) {
	_, addresses, err := p.created(ctx)
	if err != nil {
		return "", err
	}
	var tokens []string
	for _, a := range addresses {
		u, err := url.Parse(a)
		if err != nil {
			return "", differs("the url is no address")
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
	return fmt.Sprintf("%d characters, another one for each stream", len(tokens[0])), nil
}

// inputOf is what the status of a stream that was made with a body calls its
// input.
func (p *play) inputOf(ctx context.Context, body string) (string, error) {
	r, made, err := p.makeStream(ctx, body)
	if err != nil {
		return "", err
	}
	if err := r.ok(); err != nil {
		return "", err
	}
	fields, err := p.status(ctx, made.ID)
	if err != nil {
		return "", err
	}
	return string(fields["input"]), nil
}

func liveEmptyBody(ctx context.Context, p *play) (string, error) {
	for _, body := range []string{"", "{}"} {
		input, err := p.inputOf(ctx, body)
		if err != nil {
			return "", err
		}
		if !sameJSON(input, "{}") {
			return "", differs("after the body %q input is %s", body, input)
		}
	}
	return "input is {}", nil
}

func liveInput(ctx context.Context, p *play) (string, error) {
	const body = ` {"name":"rehearsal","room":{"seats":[1,2.5,null]},"ü":"\u00e9","flag":true} `
	input, err := p.inputOf(ctx, body)
	if err != nil {
		return "", err
	}
	if !sameJSON(input, body) {
		return "", differs("%s came back as %s", strings.TrimSpace(body), protocol.Clean(input, 200))
	}
	return "it came back", nil
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

// refusesBodies demands a 400 in its form for each body.
func (p *play) refusesBodies(ctx context.Context, path string, bodies ...string) (string, error) {
	for _, body := range bodies {
		r, err := p.do(ctx, ask{method: "POST", path: path, body: body})
		if err != nil {
			return "", err
		}
		if err := r.invalid(); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("400 for %d of them", len(bodies)), nil
}

func liveArray(ctx context.Context, p *play) (string, error) {
	return p.refusesBodies(ctx, "/v1/live", "[]", `[{}]`, `"text"`, "5", "null", "true")
}

func liveInvalid(ctx context.Context, p *play) (string, error) {
	return p.refusesBodies(ctx, "/v1/live", "{", "{'a':1}", "{}{}", "audio", "{\"a\":\xff}")
}

func liveUnknown(ctx context.Context, p *play) (string, error) {
	for _, id := range []string{nowhere, "no-uuid"} {
		r, err := p.do(ctx, ask{method: "GET", path: "/v1/live/" + id})
		if err != nil {
			return "", err
		}
		if err := r.apiError(http.StatusNotFound); err != nil {
			return "", err
		}
	}
	return "404", nil
}

func liveForeign(ctx context.Context, p *play) (string, error) {
	if p.OtherKey == "" {
		return "", skipped("it needs a key of another account: --other-key KEY")
	}
	ids, _, err := p.created(ctx)
	if err != nil {
		return "", err
	}
	r, err := p.do(ctx, ask{method: "GET", path: "/v1/live/" + ids[0], auth: "Bearer " + p.OtherKey})
	if err != nil {
		return "", err
	}
	return "404", r.apiError(http.StatusNotFound)
}

// firstStatus is that of a stream which nobody opens.
func (p *play) firstStatus(ctx context.Context) (*reply, error) {
	ids, _, err := p.created(ctx)
	if err != nil {
		return nil, err
	}
	return p.do(ctx, ask{method: "GET", path: "/v1/live/" + ids[1]})
}

func statusShape(ctx context.Context, p *play) (string, error) {
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
	ids, _, _ := p.created(ctx) // it went well before
	if fields["id"] != ids[1] {
		return "", differs("asked for %s, %s", ids[1], r)
	}
	all, _ := r.isJSON() // it is
	if _, ok := decode[map[string]any](all, "input"); !ok {
		return "", differs("%s: input is no object", r)
	}
	for _, name := range []string{"startedAt", "completedAt"} {
		if raw, there := all[name]; there && string(raw) != "null" && textOf(all, name) == "" {
			return "", differs("%s: %s is neither a string nor null", r, name)
		}
	}
	return r.excerpt(), nil
}

func statusSuccess(ctx context.Context, p *play) (string, error) {
	r, err := p.firstStatus(ctx)
	if err != nil {
		return "", err
	}
	return "200", r.is(http.StatusOK)
}

func statusCreated(ctx context.Context, p *play) (string, error) {
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

func statusNull(ctx context.Context, p *play) (string, error) {
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
			return "", differs("before it was opened, %s", r)
		}
	}
	return "both are null", nil
}

func statusRunning(ctx context.Context, p *play) (string, error) {
	t, err := p.conversation(ctx)
	if err != nil {
		return "", err
	}
	if t.during == nil {
		return "", skipped("the conversation ended too early: %s", t.end)
	}
	return statusIs(t.during, protocol.StatusRunning, true, false)
}

func statusDone(ctx context.Context, p *play) (string, error) {
	t, err := p.conversation(ctx)
	if err != nil {
		return "", err
	}
	return statusIs(t.after, protocol.StatusDone, true, true)
}

// statusIs demands a status, and times that are there or null.
func statusIs(fields map[string]json.RawMessage, status string, started, completed bool) (string, error) {
	got := fmt.Sprintf("status %s, startedAt %s, completedAt %s", fields["status"], fields["startedAt"], fields["completedAt"])
	if textOf(fields, "status") != status || (textOf(fields, "startedAt") != "") != started || (textOf(fields, "completedAt") != "") != completed {
		return "", differs("%s", got)
	}
	return got, nil
}

func statusLeft(ctx context.Context, p *play) (string, error) {
	w, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	defer w.close()
	_ = w.chunk(make([]float32, protocol.ChunkSamples))
	w.leave(ctx, websocket.CloseNormalClosure)
	fields, err := p.settled(ctx, w.id)
	if err != nil {
		return "", err
	}
	return statusIs(fields, protocol.StatusDone, true, true)
}

func statusLost(ctx context.Context, p *play) (string, error) {
	w, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	_ = w.chunk(make([]float32, protocol.ChunkSamples))
	w.close()
	fields, err := p.settled(ctx, w.id)
	if err != nil {
		return "", err
	}
	return statusIs(fields, protocol.StatusError, true, true)
}

var instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)

func statusTimes(ctx context.Context, p *play) (string, error) {
	t, err := p.conversation(ctx)
	if err != nil {
		return "", err
	}
	var at []time.Time
	for _, name := range []string{"startedAt", "completedAt"} {
		text := textOf(t.after, name)
		if text == "" {
			return "", skipped("%s is not there: see status/done", name)
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
	return fmt.Sprintf("%s to %s", textOf(t.after, "startedAt"), textOf(t.after, "completedAt")), nil
}
