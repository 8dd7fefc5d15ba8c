package conform

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"hubbub/protocol"
)

var testRules = []Rule{
	{Name: "test/body", Expected: "GET /v1/test returns JSON with the strings status and message", Section: "Test the API key", check: func(p *prober) string {
		r := p.do(get("/v1/test"))
		r.expectSuccess()
		fields := r.text("status", "message")
		return fmt.Sprintf("%d, %q: %q", r.status, fields["status"], fields["message"])
	}},
	{Name: "test/success", Expected: `GET /v1/test returns 200, and its status is "OK"`, Section: "Test the API key", Chosen: true, check: func(p *prober) string {
		r := p.do(get("/v1/test"))
		fields := r.object()
		if r.status != http.StatusOK || textOf(fields, "status") != protocol.StatusOK {
			differs("%s", r)
		}
		return "200 OK"
	}},
}

var keyRules = []Rule{
	{Name: "keys/needed", Expected: "no operation succeeds without an API key", Section: "Authentication", check: func(p *prober) string {
		all := p.operations()
		// Of what exists, as an unknown stream or object may be refused for another reason.
		_ = try(func() { ids, _ := p.created(); all[2] = get("/v1/live/" + ids[1]) })
		_ = try(func() { all[4] = media("output", uploaded.of(p).location) })
		p.refused(all)
		return "all five refuse"
	}},
	{Name: "keys/needed-beside", Expected: "watching, the list of media, and jobs do not succeed without an API key either", Section: "Authentication", Chosen: true, check: func(p *prober) string {
		// As above, of what exists.
		job, stream := unknownID, unknownID
		_ = try(func() { job = newJob(p) })
		_ = try(func() { ids, _ := p.created(); stream = ids[0] })
		all := []request{get("/v1/live/" + stream + "/events"), get("/v1/media"), get("/v1/jobs/" + job), get("/v2/jobs")}
		for _, path := range []string{"/v1/diarize", "/v1/voiceprint", "/v1/identify"} {
			all = append(all, post(path, locationBody("media://"+p.prefix+"/nothing")))
		}
		p.refused(all)
		if conn, r := p.watchHandshake(stream, "", ""); conn != nil {
			_ = conn.Close()
			differs("without a key, %s", r)
		}
		return "all seven refuse"
	}},
	{Name: "keys/missing", Expected: "without a key every operation returns 401, an ApiError, with WWW-Authenticate: Bearer", Section: "Authentication", Chosen: true, check: func(p *prober) string { return p.unauthorized("-") }},
	{Name: "keys/malformed", Expected: "a credential other than Bearer gets 401, an ApiError, with WWW-Authenticate: Bearer", Section: "Authentication", Chosen: true, check: func(p *prober) string {
		for _, auth := range []string{"Bearer", "Bearer ", p.Key, "Basic " + p.Key, "Token " + p.Key, "Bearer " + p.Key + " " + p.Key} {
			if err := try(func() { p.expectUnauthorized(get("/v1/test").with(auth)) }); err != nil {
				differs("with the header Authorization: %s: %v", p.secrets.Text(auth), err)
			}
		}
		return "401 without a key or scheme, with other schemes, and with two keys"
	}},
	{Name: "keys/unknown", Expected: "with a wrong key every operation returns 401, an ApiError, with WWW-Authenticate: Bearer", Section: "Authentication", Chosen: true, check: func(p *prober) string {
		return p.unauthorized("Bearer hubbub-conform-" + strings.Repeat("x", 20))
	}},
	{Name: "keys/expired", Expected: "with an expired key every operation returns 401, an ApiError, with WWW-Authenticate: Bearer", Section: "JWT keys", Chosen: true, check: func(p *prober) string {
		return p.unauthorized(bearer(p.ExpiredKey, "an expired key: --expired-key KEY"))
	}},
	{Name: "keys/unpaid", Expected: "with a key without a subscription every operation but GET /v1/test returns 402, an ApiError", Section: "Subscription", Chosen: true, check: func(p *prober) string {
		auth := bearer(p.UnpaidKey, "a key of an account without a subscription: --unpaid-key KEY")
		for i, a := range p.operations() {
			r := p.do(a.with(auth))
			if i == 0 {
				r.expectSuccess()
			} else {
				r.expectAPIError(http.StatusPaymentRequired)
			}
		}
		return "402 from four operations, and /v1/test succeeds"
	}},
}

// unknownID is the id of no stream.
const unknownID = "00000000-0000-4000-8000-000000000000"

// operations are correct requests of five of the operations that need a key.
func (p *prober) operations() []request {
	nothing := "media://" + p.prefix + "/nothing"
	return []request{get("/v1/test"), post("/v1/live", "{}"), get("/v1/live/" + unknownID), media("input", nothing), media("output", nothing)}
}

// refused requires that requests without a key do not succeed.
func (p *prober) refused(all []request) {
	for _, a := range all {
		r := p.do(a.with("-"))
		if r.status < 400 {
			differs("without a key, %s", r)
		}
	}
}

// unauthorized requests every operation with an invalid credential.
func (p *prober) unauthorized(auth string) string {
	for _, a := range p.operations() {
		p.expectUnauthorized(a.with(auth))
	}
	return "401 from all five"
}

// expectUnauthorized requires a 401 with its body and header.
func (p *prober) expectUnauthorized(a request) {
	r := p.do(a)
	r.expectAPIError(http.StatusUnauthorized)
	if h := r.header.Get("WWW-Authenticate"); !strings.HasPrefix(strings.ToLower(h), "bearer") {
		differs("%s, with WWW-Authenticate %q", r, h)
	}
}

// decode decodes a field, and reports whether it has that type and is not null.
func decode[T any](fields map[string]json.RawMessage, name string) (out T, ok bool) {
	raw, there := fields[name]
	if !there || string(raw) == "null" || json.Unmarshal(raw, &out) != nil {
		return out, false
	}
	return out, true
}
