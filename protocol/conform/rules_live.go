package conform

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

var liveRules = []Rule{
	{Name: "live/create", Expected: "POST /v1/live with an empty object succeeds and returns the strings id and url", Section: "Create a stream", check: func(p *prober) string {
		made := creations.of(p)[0]
		made.expectSuccess()
		return "id " + made.text("id", "url")["id"]
	}},
	{Name: "live/success", Expected: "POST /v1/live returns 200", Section: "Create a stream", Chosen: true, check: func(p *prober) string {
		creations.of(p)[0].expect(http.StatusOK)
		return "200"
	}},
	{Name: "live/id", Expected: "the id of a stream is a UUID, and no two are the same", Section: "Create a stream", Chosen: true, check: func(p *prober) string {
		ids, _ := p.created()
		if !uuid.MatchString(ids[0]) || ids[0] == ids[1] {
			differs("two streams have the ids %q and %q", ids[0], ids[1])
		}
		return ids[0]
	}},
	{Name: "live/address", Expected: "the address of a stream begins with wss:// and has a token in its query", Section: "Stream token", check: func(p *prober) string {
		_, addresses := p.created()
		u, err := url.Parse(addresses[0])
		if err != nil || u.Host == "" {
			differs("the url is not an address")
		}
		if !u.Query().Has("token") || u.Query().Get("token") == "" {
			differs("the address %s://%s%s has no token in its query", u.Scheme, u.Host, u.Path)
		}
		if u.Scheme == "ws" && strings.HasPrefix(p.Client.BaseURL(), "http://") {
			skipped("the service is used without TLS (http://)")
		}
		if u.Scheme != "wss" {
			differs("the address begins with %s://", u.Scheme)
		}
		return "wss://" + u.Host + u.Path
	}},
	{Name: "live/token", Expected: "the token has at least 128 random bits", Section: "Stream token", Chosen: true, check: func(p *prober) string {
		_, addresses := p.created()
		var tokens []string
		for _, a := range addresses {
			u, err := url.Parse(a)
			if err != nil {
				differs("the url is not an address")
			}
			tokens = append(tokens, u.Query().Get("token"))
		}
		// A character of base64 has 6 bits.
		const shortest = (128 + 5) / 6
		if len(tokens[0]) < shortest {
			differs("a token has %d characters: at most %d bits", len(tokens[0]), 6*len(tokens[0]))
		}
		if tokens[0] == tokens[1] {
			differs("two streams have the same token")
		}
		return fmt.Sprintf("%d characters, different for each stream", len(tokens[0]))
	}},
	{Name: "live/empty-body", Expected: "an empty body is accepted; input is {}", Section: "Create a stream", Chosen: true, check: func(p *prober) string {
		for _, body := range []string{"", "{}"} {
			input := p.inputOf(body)
			if !sameJSON(input, "{}") {
				differs("after the body %q, input is %s", body, input)
			}
		}
		return "input is {}"
	}},
	{Name: "live/input", Expected: "any JSON object is accepted and returned as input", Section: "Create a stream", Chosen: true, check: func(p *prober) string {
		const body = ` {"name":"test","room":{"seats":[1,2.5,null]},"ü":"\u00e9","flag":true} `
		input := p.inputOf(body)
		if !sameJSON(input, body) {
			differs("%s was returned as %s", strings.TrimSpace(body), protocol.Clean(input, 200))
		}
		return "it was returned"
	}},
	{Name: "live/array", Expected: "a body that is JSON but not an object gets 400, a ValidationErrorResponse", Section: "Create a stream", Chosen: true, check: func(p *prober) string {
		return p.expectInvalid("/v1/live", "[]", `[{}]`, `"text"`, "5", "null", "true")
	}},
	{Name: "live/invalid-json", Expected: "a body that is not JSON gets 400, a ValidationErrorResponse", Section: "Create a stream", Chosen: true, check: func(p *prober) string {
		return p.expectInvalid("/v1/live", "{", "{'a':1}", "{}{}", "audio", "{\"a\":\xff}")
	}},
	{Name: "live/words", Expected: "POST /v1/live takes words; the response has words, which is true, or not", Section: "Words of a stream", Chosen: true, check: func(p *prober) string {
		r := p.do(post("/v1/live", `{"words":true}`))
		r.expectSuccess()
		words, ok := r.object()["words"]
		switch {
		case !ok:
			return "no words"
		case string(words) != "true":
			differs("%s", r)
		}
		return "words"
	}},
	{Name: "live/voiceprints", Expected: "voiceprints and matching that are not valid get 400, a ValidationErrorResponse", Section: "Recognise people", Chosen: true, check: func(p *prober) string {
		return p.expectInvalid("/v1/live",
			`{"voiceprints":{}}`, `{"voiceprints":[]}`, `{"voiceprints":["x"]}`, `{"voiceprints":[{"voiceprint":"x"}]}`,
			`{"voiceprints":[{"label":"Sam"}]}`, `{"voiceprints":[{"label":"","voiceprint":"x"}]}`,
			`{"voiceprints":[{"label":"speaker_9","voiceprint":"x"}]}`, `{"voiceprints":[{"label":"Sam","voiceprint":"no voiceprint"}]}`,
			`{"matching":7}`, `{"matching":{"threshold":101}}`, `{"matching":{"exclusive":"yes"}}`)
	}},
	{Name: "live/enrolled", Expected: "input returns the labels of voiceprints, without the voiceprints", Section: "Recognise people", Chosen: true, step: voiceprinted, check: func(p *prober) string {
		const want = `{"voiceprints":[{"label":"` + voiceprintLabel + `"}]}`
		if input := p.inputOf("{" + p.enrolment() + "}"); !sameJSON(input, want) {
			differs("input is %s", protocol.Clean(input, 200))
		}
		return "the labels alone"
	}},
	{Name: "live/unknown", Expected: "an unknown id gets 404, an ApiError", Section: "Get a stream", Chosen: true, check: func(p *prober) string {
		return p.expectError(http.StatusNotFound, get("/v1/live/"+unknownID), get("/v1/live/no-uuid"))
	}},
	{Name: "live/foreign", Expected: "the id of another account's stream gets 404, an ApiError", Section: "Get a stream", Chosen: true, check: func(p *prober) string {
		auth := p.other()
		ids, _ := p.created()
		return p.expectError(http.StatusNotFound, get("/v1/live/"+ids[0]).with(auth))
	}},
	{Name: "status/shape", Expected: "GET /v1/live/{id} returns id, status, input (an object), startedAt and completedAt", Section: "Get a stream", check: func(p *prober) string {
		r := p.firstStatus()
		r.expectSuccess()
		fields := r.text("id", "status")
		ids, _ := p.created()
		if fields["id"] != ids[1] {
			differs("requested %s: %s", ids[1], r)
		}
		all := r.object()
		if _, ok := decode[map[string]any](all, "input"); !ok {
			differs("%s: input is not an object", r)
		}
		for _, name := range []string{"startedAt", "completedAt"} {
			if raw, there := all[name]; there && string(raw) != "null" && textOf(all, name) == "" {
				differs("%s: %s is neither a string nor null", r, name)
			}
		}
		return r.excerpt()
	}},
	{Name: "status/success", Expected: "GET /v1/live/{id} returns 200", Section: "Get a stream", Chosen: true, check: func(p *prober) string {
		p.firstStatus().expect(http.StatusOK)
		return "200"
	}},
	{Name: "status/created", Expected: `a stream that was not opened yet is "created"`, Section: "Stream status", check: func(p *prober) string {
		r := p.firstStatus()
		if textOf(r.object(), "status") != protocol.StatusCreated {
			differs("%s", r)
		}
		return "created"
	}},
	{Name: "status/null", Expected: "startedAt and completedAt are present and null until they happen", Section: "Get a stream", Chosen: true, check: func(p *prober) string {
		r := p.firstStatus()
		fields := r.object()
		for _, name := range []string{"startedAt", "completedAt"} {
			if string(fields[name]) != "null" {
				differs("before it was opened: %s", r)
			}
		}
		return "both are null"
	}},
	{Name: "status/running", Expected: `an open stream is "running", with startedAt and without completedAt`, Section: "Stream status", Chosen: true, step: conversation, check: func(p *prober) string {
		e := conversation.of(p)
		if e.during == nil {
			skipped("the conversation ended too early: %s", e.end)
		}
		return statusIs(e.during, protocol.StatusRunning, false)
	}},
	{Name: "status/done", Expected: `after end_of_stream and its close a stream is "done", with both times`, Section: "Stream status", Chosen: true, step: conversation, check: func(p *prober) string { return statusIs(conversation.of(p).after, protocol.StatusDone, true) }},
	{Name: "status/closed", Expected: `a stream that its client closes with 1000 is "done"`, Section: "Stream status", Chosen: true, check: func(p *prober) string {
		s := p.open()
		defer s.close()
		_ = s.chunk(make([]float32, protocol.ChunkSamples))
		s.closeWith(p.ctx, websocket.CloseNormalClosure)
		return statusIs(p.finalStatus(s.id), protocol.StatusDone, true)
	}},
	{Name: "status/lost", Expected: `a stream whose connection is lost is "error", with completedAt`, Section: "Stream status", Chosen: true, check: func(p *prober) string {
		s := p.open()
		_ = s.chunk(make([]float32, protocol.ChunkSamples))
		s.close()
		return statusIs(p.finalStatus(s.id), protocol.StatusError, true)
	}},
	{Name: "status/times", Expected: "times have the form YYYY-MM-DDThh:mm:ssZ, and completedAt is not before startedAt", Section: "Get a stream", step: conversation, check: func(p *prober) string {
		e := conversation.of(p)
		var at []time.Time
		for _, name := range []string{"startedAt", "completedAt"} {
			text := textOf(e.after, name)
			if text == "" {
				skipped("%s is missing: see status/done", name)
			}
			parsed, err := time.Parse(time.RFC3339, text)
			if err != nil || !instant.MatchString(text) {
				differs("%s is %q", name, protocol.Clean(text, 60))
			}
			at = append(at, parsed)
		}
		if at[1].Before(at[0]) {
			differs("completedAt %v is before startedAt %v", at[1], at[0])
		}
		return fmt.Sprintf("%s to %s", textOf(e.after, "startedAt"), textOf(e.after, "completedAt"))
	}},
}

// creations are the responses to the creation of two streams.
var creations = share(func(p *prober) []*response {
	creation := post("/v1/live", "{}")
	return []*response{p.do(creation), p.do(creation)}
})

// created are the ids and addresses of two streams.
func (p *prober) created() (ids, addresses []string) {
	for _, r := range creations.of(p) {
		if r.status/100 != 2 {
			skipped("it needs a stream, and none could be created: %s", r)
		}
		ids, addresses = append(ids, r.live().ID), append(addresses, r.live().URL)
	}
	return ids, addresses
}

// inputOf is the input in the status of a stream that was created with a body.
func (p *prober) inputOf(body string) string {
	r := p.do(post("/v1/live", body))
	r.expectSuccess()
	return string(p.status(r.live().ID)["input"])
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// expectInvalid requires a 400 with its body for each request body.
func (p *prober) expectInvalid(path string, bodies ...string) string {
	for _, body := range bodies {
		p.do(post(path, body)).expectInvalid()
	}
	return fmt.Sprintf("400 for %d of them", len(bodies))
}

// firstStatus requests the status of a stream that was not opened.
func (p *prober) firstStatus() *response {
	ids, _ := p.created()
	return p.do(get("/v1/live/" + ids[1]))
}

// statusIs requires a status and startedAt, and that completedAt is present or null.
func statusIs(fields map[string]json.RawMessage, status string, completed bool) string {
	got := fmt.Sprintf("status %s, startedAt %s, completedAt %s", fields["status"], fields["startedAt"], fields["completedAt"])
	if textOf(fields, "status") != status || textOf(fields, "startedAt") == "" || (textOf(fields, "completedAt") != "") != completed {
		differs("%s", got)
	}
	return got
}

var instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
