package conform

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var errorRules = []Rule{
	{Name: "errors/api-error", Expected: "every error has the strings requestId and message, as JSON; one of 400 is a ValidationErrorResponse", Section: "Errors", check: func(p *prober) string {
		for _, a := range []request{get("/v1/live/" + unknownID), get("/v1/test").with("-")} {
			switch r := p.do(a); {
			case r.status < 400:
				differs("an error was expected: %s", r)
			case r.status == http.StatusBadRequest: // as for an ID that does not have the service's form
				r.expectInvalid()
			default:
				r.text("requestId", "message")
			}
		}
		return "both are present"
	}},
	{Name: "errors/request-id", Expected: "requestId is a UUID, different for each request, and also in the header X-Request-Id", Section: "Response headers", Chosen: true, check: func(p *prober) string {
		var last string
		for range 2 {
			r := p.do(get("/v1/live/" + unknownID))
			fields := r.text("requestId")
			id, head := fields["requestId"], r.header.Get("X-Request-Id")
			switch {
			case !uuid.MatchString(id):
				differs("requestId is %q", id)
			case head != id:
				differs("requestId is %s, and the header X-Request-Id is %q", id, head)
			case id == last:
				differs("two requests have the same requestId, %s", id)
			}
			last = id
		}
		return last
	}},
	{Name: "errors/not-found", Expected: "an address that does not exist gets 404, an ApiError", Section: "Errors", Chosen: true, check: func(p *prober) string {
		return p.expectError(http.StatusNotFound, get("/v1/nothing"), get("/v1/"), get("/v2/test"))
	}},
	{Name: "errors/method", Expected: "a method that an address does not have gets 405, an ApiError, with Allow", Section: "Errors", Chosen: true, check: func(p *prober) string {
		for _, a := range []request{
			remove("/v1/test"), {method: "PUT", path: "/v1/live", body: "{}"}, post("/v1/live/"+unknownID, "{}"), get("/v1/media/output"),
		} {
			r := p.do(a)
			r.expectAPIError(http.StatusMethodNotAllowed)
			if r.header.Get("Allow") == "" {
				differs("%s, without Allow", r)
			}
		}
		return "405"
	}},
	{Name: "errors/too-large", Expected: "a body that is too large gets 413, an ApiError", Section: "Errors", Chosen: true, check: func(p *prober) string {
		const size = 2 << 20
		r := p.do(post("/v1/live", `{"text":"`+strings.Repeat("x", size)+`"}`))
		r.request = "POST /v1/live with a body of 2 MiB" // the whole body would fill the screen
		if r.status/100 == 2 {
			notOffered("%s was accepted; the limit is not known", r.request)
		}
		r.expectAPIError(http.StatusRequestEntityTooLarge)
		return "413"
	}},
}

var monitoringRules = []Rule{
	{Name: "beside/openapi", Expected: "GET /openapi.json describes the service, without a key", Section: "HTTP conventions", Chosen: true, check: func(p *prober) string {
		r := p.unauthenticated("/openapi.json")
		fields := r.object()
		version := textOf(fields, "openapi")
		paths, ok := decode[map[string]json.RawMessage](fields, "paths")
		if version == "" || !ok {
			differs("it has no fields openapi and paths")
		}
		for _, want := range []string{"/v1/test", "/v1/live", "/v1/live/{id}", "/v1/media/output"} {
			if _, ok := paths[want]; !ok {
				differs("it does not describe %s", want)
			}
		}
		return fmt.Sprintf("OpenAPI %s, %d paths", version, len(paths))
	}},
	{Name: "beside/healthz", Expected: "GET /healthz returns 200, without a key", Section: "Health", Chosen: true, check: health("/healthz")},
	{Name: "beside/readyz", Expected: "GET /readyz returns 200, without a key", Section: "Health", Chosen: true, check: health("/readyz")},
	{Name: "beside/metrics", Expected: "GET /metrics returns the Prometheus text format, without a key", Section: "Metrics", Chosen: true, check: func(p *prober) string {
		r := p.unauthenticated("/metrics")
		n := len(sample.FindAll(r.body, -1))
		if n == 0 {
			differs("%s, without a sample in the Prometheus text format", r)
		}
		return fmt.Sprintf("%d samples", n)
	}},
}

var rateRules = []Rule{
	{Name: "rate/headers", Expected: "every response of an operation has X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, and each request reduces the remaining ones", Section: "Rate limits", Chosen: true, check: func(p *prober) string {
		for _, a := range p.operations() {
			var before limits
			for i := range 2 {
				r := p.do(a)
				now := limitsOf(r)
				// Older requests may be more than a minute ago, others may use the key.
				if i == 1 && now.left == before.left && now.left == now.limit {
					differs("%s left %d of %d both times", r.request, now.left, now.limit)
				}
				if now.left > now.limit || now.reset > 3600 {
					differs("%s left %d of %d, for %d s", r.request, now.left, now.limit, now.reset)
				}
				before = now
			}
		}
		return "on all five operations"
	}},
	{Name: "rate/limit", Expected: "the limit is 100 requests per minute, account and operation; the next one gets 429, an ApiError, with Retry-After", Section: "Rate limits", Chosen: true, Many: true, check: func(p *prober) string {
		began := time.Now()
		a := request{method: "GET", path: "/v1/test", limited: true}
		for n := 1; ; n++ {
			if n > ratePerMinute+1 {
				unrefused(time.Since(began))
			}
			r := p.do(a)
			if r.status == http.StatusTooManyRequests {
				return p.limited(r, n)
			}
			var l limits
			switch ended := try(func() { l = limitsOf(r) }); {
			case ended == nil && l.limit != ratePerMinute:
				differs("X-RateLimit-Limit is %d", l.limit)
			case ended != nil && n == 1 && ended.verdict == NotOffered:
				panic(ended)
			}
		}
	}},
}

// unauthenticated requests a path that needs no key.
func (p *prober) unauthenticated(path string) *response {
	r := p.do(get(path).with("-"))
	if r.status == http.StatusNotFound {
		notOffered("%s", r)
	}
	r.expect(http.StatusOK)
	return r
}

func health(path string) func(*prober) string {
	return func(p *prober) string { return fmt.Sprint(p.unauthenticated(path).status) }
}

// sample is a line of the Prometheus text format.
var sample = regexp.MustCompile(`(?m)^[a-zA-Z_:][a-zA-Z0-9_:]*(\{.*\})? [-+0-9.eEInfNa]+( [0-9]+)?$`)

// limits are the values of the three headers.
type limits struct{ limit, left, reset int }

// limitsOf parses the headers. A response without any is "not offered".
func limitsOf(r *response) limits {
	names := []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	if !slices.ContainsFunc(names, func(name string) bool { return r.header.Get(name) != "" }) {
		notOffered("%s, without any of the headers", r.request)
	}
	var n [3]int
	for i, name := range names {
		var err error
		if n[i], err = strconv.Atoi(r.header.Get(name)); err != nil || n[i] < 0 {
			differs("%s, with %s %q", r, name, r.header.Get(name))
		}
	}
	return limits{n[0], n[1], n[2]}
}

// ratePerMinute is the limit of requests per minute.
const ratePerMinute = 100

// unrefused ends the rule if the service has taken one request more in this time.
func unrefused(took time.Duration) {
	if took >= time.Minute {
		skipped("%d requests took %.0f s: too slow to exceed the limit", ratePerMinute+1, took.Seconds())
	}
	differs("%d requests in %.0f s, and none was refused", ratePerMinute+1, took.Seconds())
}

// limited tests the first 429, the response to the n-th request.
func (p *prober) limited(r *response, n int) string {
	r.expectAPIError(http.StatusTooManyRequests)
	l := limitsOf(r)
	wait, err := strconv.Atoi(r.header.Get("Retry-After"))
	switch {
	case err != nil || wait < 1 || wait > 60:
		differs("%s, with Retry-After %q", r, r.header.Get("Retry-After"))
	case l.limit != ratePerMinute || l.left != 0:
		differs("%s, with %d of %d requests left", r, l.left, l.limit)
	}
	// Earlier requests with this key count, of this run or of others.
	if earlier := ratePerMinute + 1 - n; earlier > int(p.tests.Load()) {
		differs("request number %d was refused, after only %d earlier ones in this run; is the key used elsewhere?", n, p.tests.Load())
	}
	other := p.do(request{method: "GET", path: "/v1/live/" + unknownID, limited: true})
	if other.status == http.StatusTooManyRequests {
		differs("after %s, another operation also returned 429", r.request)
	}
	return fmt.Sprintf("the request after %d was refused for %d s, other operations were not", ratePerMinute, wait)
}
