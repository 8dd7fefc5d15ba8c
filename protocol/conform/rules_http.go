package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var errorRules = []Rule{
	{Name: "errors/api-error", Expected: "an error that is no 400 has the strings requestId and message, as JSON", Source: specification + " 2.6, 4, 7", check: errorsForm},
	{Name: "errors/request-id", Expected: "requestId is a UUID, another one for each request, and also in the header X-Request-Id", Source: contract + " 2, other errors", check: errorsID},
	{Name: "errors/not-found", Expected: "an address that does not exist gets 404, an ApiError", Source: contract + " 2, other errors", check: errorsNotFound},
	{Name: "errors/method", Expected: "a method that an address does not have gets 405, an ApiError", Source: contract + " 2, other errors", check: errorsMethod},
	{Name: "errors/too-large", Expected: "a body that is too large gets 413, an ApiError", Source: contract + " 2, other errors", check: errorsTooLarge},
}

var besideRules = []Rule{
	{Name: "beside/openapi", Expected: "GET /openapi.json describes the service, without a key", Source: contract + " 2, served beside", check: besideOpenAPI},
	{Name: "beside/healthz", Expected: "GET /healthz answers 200, without a key", Source: contract + " 2, served beside", check: besideHealth("/healthz")},
	{Name: "beside/readyz", Expected: "GET /readyz answers 200, without a key", Source: contract + " 2, served beside", check: besideHealth("/readyz")},
	{Name: "beside/metrics", Expected: "GET /metrics answers in the text form of Prometheus, without a key", Source: contract + " 2, served beside", check: besideMetrics},
}

var rateRules = []Rule{
	{Name: "rate/headers", Expected: "every answer of an operation has X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, and each request leaves one less", Source: contract + " 2, 429", check: rateHeaders},
	{Name: "rate/limit", Expected: "the limit is 100 requests a minute for each account and operation; the one after gets 429, an ApiError, with Retry-After", Source: contract + " 2, 429; " + specification + " 4.1", Many: true, check: rateLimit},
}

// unknownStream is an error that every service has.
func (p *play) unknownStream(ctx context.Context) (*reply, error) {
	return p.do(ctx, ask{method: "GET", path: "/v1/live/" + nowhere})
}

func errorsForm(ctx context.Context, p *play) (string, error) {
	for _, a := range []ask{{method: "GET", path: "/v1/live/" + nowhere}, {method: "GET", path: "/v1/test", auth: "-"}} {
		r, err := p.do(ctx, a)
		if err != nil {
			return "", err
		}
		if r.status < 400 {
			return "", differs("an error was expected: %s", r)
		}
		if _, err := r.text("requestId", "message"); err != nil {
			return "", err
		}
	}
	return "both are there", nil
}

func errorsID(ctx context.Context, p *play) (string, error) {
	var last string
	for range 2 {
		r, err := p.unknownStream(ctx)
		if err != nil {
			return "", err
		}
		fields, err := r.text("requestId")
		if err != nil {
			return "", err
		}
		id, head := fields["requestId"], r.header.Get("X-Request-Id")
		switch {
		case !uuid.MatchString(id):
			return "", differs("requestId is %q", id)
		case head != id:
			return "", differs("requestId is %s, and the header X-Request-Id is %q", id, head)
		case id == last:
			return "", differs("two requests had the same requestId, %s", id)
		}
		last = id
	}
	return last, nil
}

func errorsNotFound(ctx context.Context, p *play) (string, error) {
	for _, path := range []string{"/v1/nothing", "/v1/", "/v2/test"} {
		r, err := p.do(ctx, ask{method: "GET", path: path})
		if err != nil {
			return "", err
		}
		if err := r.apiError(http.StatusNotFound); err != nil {
			return "", err
		}
	}
	return "404", nil
}

func errorsMethod(ctx context.Context, p *play) (string, error) {
	for _, a := range []ask{
		{method: "DELETE", path: "/v1/test", none: true}, {method: "PUT", path: "/v1/live", body: "{}"},
		{method: "POST", path: "/v1/live/" + nowhere, body: "{}"}, {method: "GET", path: "/v1/media/output"},
	} {
		r, err := p.do(ctx, a)
		if err != nil {
			return "", err
		}
		if err := r.apiError(http.StatusMethodNotAllowed); err != nil {
			return "", err
		}
	}
	return "405", nil
}

func errorsTooLarge(ctx context.Context, p *play) (string, error) {
	const size = 2 << 20
	r, err := p.do(ctx, ask{method: "POST", path: "/v1/live", body: `{"text":"` + strings.Repeat("x", size) + `"}`})
	if err != nil {
		return "", err
	}
	r.what = "POST /v1/live with a body of 2 MiB" // the whole would fill the screen
	if r.status/100 == 2 {
		return "", notOffered("%s was accepted, and what is too large is not said", r.what)
	}
	return "413", r.apiError(http.StatusRequestEntityTooLarge)
}

// beside asks for what is served without a key.
func (p *play) beside(ctx context.Context, path string) (*reply, error) {
	r, err := p.do(ctx, ask{method: "GET", path: path, auth: "-"})
	if err != nil {
		return nil, err
	}
	if r.status == http.StatusNotFound {
		return nil, notOffered("%s", r)
	}
	return r, r.is(http.StatusOK)
}

func besideOpenAPI(ctx context.Context, p *play) (string, error) {
	r, err := p.beside(ctx, "/openapi.json")
	if err != nil {
		return "", err
	}
	fields, err := r.isJSON()
	if err != nil {
		return "", err
	}
	version := textOf(fields, "openapi")
	paths, ok := decode[map[string]json.RawMessage](fields, "paths")
	if version == "" || !ok {
		return "", differs("it has no openapi and paths")
	}
	for _, want := range []string{"/v1/test", "/v1/live", "/v1/live/{id}", "/v1/media/output"} {
		if _, ok := paths[want]; !ok {
			return "", differs("it does not describe %s", want)
		}
	}
	return fmt.Sprintf("OpenAPI %s, %d paths", version, len(paths)), nil
}

func besideHealth(path string) func(context.Context, *play) (string, error) {
	return func(ctx context.Context, p *play) (string, error) {
		r, err := p.beside(ctx, path)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(r.status), nil
	}
}

// sample is a line of the text form of Prometheus.
var sample = regexp.MustCompile(`(?m)^[a-zA-Z_:][a-zA-Z0-9_:]*(\{.*\})? [-+0-9.eEInfNa]+( [0-9]+)?$`)

func besideMetrics(ctx context.Context, p *play) (string, error) {
	r, err := p.beside(ctx, "/metrics")
	if err != nil {
		return "", err
	}
	n := len(sample.FindAll(r.body, -1))
	if n == 0 {
		return "", differs("%s, which has no sample of Prometheus", r)
	}
	return fmt.Sprintf("%d samples", n), nil
}

// limits are the three headers.
type limits struct{ limit, left, reset int }

// limitsOf reads them. None at all is not offered.
func limitsOf(r *reply) (limits, error) {
	names := []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	var n [3]int
	missing := 0
	var bad error
	for i, name := range names {
		v, err := strconv.Atoi(r.header.Get(name))
		if r.header.Get(name) == "" {
			missing++
		}
		if (err != nil || v < 0) && bad == nil {
			bad = differs("%s, with %s %q", r, name, r.header.Get(name))
		}
		n[i] = v
	}
	if missing == len(names) {
		return limits{}, notOffered("%s, without any of the headers", r.what)
	}
	return limits{n[0], n[1], n[2]}, bad
}

func rateHeaders(ctx context.Context, p *play) (string, error) {
	for _, a := range p.operations() {
		var before limits
		for i := range 2 {
			r, err := p.do(ctx, a)
			if err != nil {
				return "", err
			}
			now, err := limitsOf(r)
			if err != nil {
				return "", err
			}
			// Older requests may leave the minute, others may share the key.
			if i == 1 && now.left == before.left && now.left == now.limit {
				return "", differs("%s twice left %d of %d both times", r.what, now.left, now.limit)
			}
			if now.left > now.limit || now.reset > 3600 {
				return "", differs("%s left %d of %d, for %d s", r.what, now.left, now.limit, now.reset)
			}
			before = now
		}
	}
	return "on all five operations", nil
}

// contractRate is how many requests a minute has.
const contractRate = 100

func rateLimit(ctx context.Context, p *play) (string, error) {
	began := time.Now()
	a := ask{method: "GET", path: "/v1/test", limited: true}
	for n := 1; n <= contractRate+1; n++ {
		r, err := p.do(ctx, a)
		if err != nil {
			return "", err
		}
		if r.status != http.StatusTooManyRequests {
			if l, err := limitsOf(r); err == nil && l.limit != contractRate {
				return "", differs("X-RateLimit-Limit is %d", l.limit)
			} else if n == 1 && err != nil {
				var v *verdict
				if errors.As(err, &v) && v.verdict == NotOffered {
					return "", err
				}
			}
			continue
		}
		return p.limited(ctx, r, n)
	}
	return "", differs("%d requests in %.0f s, and none was refused", contractRate+1, time.Since(began).Seconds())
}

// limited judges the first 429, of the nth request.
func (p *play) limited(ctx context.Context, r *reply, n int) (string, error) {
	if err := r.apiError(http.StatusTooManyRequests); err != nil {
		return "", err
	}
	l, err := limitsOf(r)
	if err != nil {
		return "", err
	}
	wait, err := strconv.Atoi(r.header.Get("Retry-After"))
	switch {
	case err != nil || wait < 1 || wait > 60:
		return "", differs("%s, with Retry-After %q", r, r.header.Get("Retry-After"))
	case l.limit != contractRate || l.left != 0:
		return "", differs("%s, with %d of %d requests left", r, l.left, l.limit)
	}
	// What was asked before, by this play or by others with this key, counts.
	if earlier := contractRate + 1 - n; earlier > int(p.tests.Load()) {
		return "", differs("the %dth request was refused, and only %d had gone before it in this play; do others use this key?", n, p.tests.Load())
	}
	other, err := p.do(ctx, ask{method: "GET", path: "/v1/live/" + nowhere, limited: true})
	if err != nil {
		return "", err
	}
	if other.status == http.StatusTooManyRequests {
		return "", differs("after %s, another operation answered 429, too", r.what)
	}
	return fmt.Sprintf("the request after %d was refused for %d s, and other operations go on", contractRate, wait), nil
}
