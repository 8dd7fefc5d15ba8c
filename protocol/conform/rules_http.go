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
	{Name: "errors/api-error", Expected: "every error other than 400 has the strings requestId and message, as JSON", Section: "Errors", check: errorsForm},
	{Name: "errors/request-id", Expected: "requestId is a UUID, different for each request, and also in the header X-Request-Id", Section: "Response headers", Chosen: true, check: errorsID},
	{Name: "errors/not-found", Expected: "an address that does not exist gets 404, an ApiError", Section: "Errors", Chosen: true, check: errorsNotFound},
	{Name: "errors/method", Expected: "a method that an address does not have gets 405, an ApiError", Section: "Errors", Chosen: true, check: errorsMethod},
	{Name: "errors/too-large", Expected: "a body that is too large gets 413, an ApiError", Section: "Errors", Chosen: true, check: errorsTooLarge},
}

var monitoringRules = []Rule{
	{Name: "beside/openapi", Expected: "GET /openapi.json describes the service, without a key", Section: "Describe the service", Chosen: true, check: openAPI},
	{Name: "beside/healthz", Expected: "GET /healthz returns 200, without a key", Section: "Health", Chosen: true, check: health("/healthz")},
	{Name: "beside/readyz", Expected: "GET /readyz returns 200, without a key", Section: "Health", Chosen: true, check: health("/readyz")},
	{Name: "beside/metrics", Expected: "GET /metrics returns the Prometheus text format, without a key", Section: "Metrics", Chosen: true, check: metrics},
}

var rateRules = []Rule{
	{Name: "rate/headers", Expected: "every response of an operation has X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, and each request reduces the remaining ones", Section: "Rate limits", Chosen: true, check: rateHeaders},
	{Name: "rate/limit", Expected: "the limit is 100 requests per minute, account and operation; the next one gets 429, an ApiError, with Retry-After", Section: "Rate limits", Chosen: true, Many: true, check: rateLimit},
}

func errorsForm(ctx context.Context, p *prober) (string, error) {
	for _, a := range []request{{method: "GET", path: "/v1/live/" + unknownID}, {method: "GET", path: "/v1/test", auth: "-"}} {
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
	return "both are present", nil
}

func errorsID(ctx context.Context, p *prober) (string, error) {
	var last string
	for range 2 {
		r, err := p.do(ctx, request{method: "GET", path: "/v1/live/" + unknownID})
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
			return "", differs("two requests have the same requestId, %s", id)
		}
		last = id
	}
	return last, nil
}

func errorsNotFound(ctx context.Context, p *prober) (string, error) {
	for _, path := range []string{"/v1/nothing", "/v1/", "/v2/test"} {
		if err := p.refused(ctx, request{method: "GET", path: path}, http.StatusNotFound); err != nil {
			return "", err
		}
	}
	return "404", nil
}

func errorsMethod(ctx context.Context, p *prober) (string, error) {
	for _, a := range []request{
		{method: "DELETE", path: "/v1/test"}, {method: "PUT", path: "/v1/live", body: "{}"},
		{method: "POST", path: "/v1/live/" + unknownID, body: "{}"}, {method: "GET", path: "/v1/media/output"},
	} {
		if err := p.refused(ctx, a, http.StatusMethodNotAllowed); err != nil {
			return "", err
		}
	}
	return "405", nil
}

func errorsTooLarge(ctx context.Context, p *prober) (string, error) {
	const size = 2 << 20
	r, err := p.do(ctx, request{method: "POST", path: "/v1/live", body: `{"text":"` + strings.Repeat("x", size) + `"}`})
	if err != nil {
		return "", err
	}
	r.request = "POST /v1/live with a body of 2 MiB" // the whole body would fill the screen
	if r.status/100 == 2 {
		return "", notOffered("%s was accepted; the limit is not known", r.request)
	}
	return "413", r.apiError(http.StatusRequestEntityTooLarge)
}

// unauthenticated requests a path that needs no key.
func (p *prober) unauthenticated(ctx context.Context, path string) (*response, error) {
	r, err := p.do(ctx, request{method: "GET", path: path, auth: "-"})
	if err != nil {
		return nil, err
	}
	if r.status == http.StatusNotFound {
		return nil, notOffered("%s", r)
	}
	return r, r.is(http.StatusOK)
}

func openAPI(ctx context.Context, p *prober) (string, error) {
	r, err := p.unauthenticated(ctx, "/openapi.json")
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
		return "", differs("it has no fields openapi and paths")
	}
	for _, want := range []string{"/v1/test", "/v1/live", "/v1/live/{id}", "/v1/media/output"} {
		if _, ok := paths[want]; !ok {
			return "", differs("it does not describe %s", want)
		}
	}
	return fmt.Sprintf("OpenAPI %s, %d paths", version, len(paths)), nil
}

func health(path string) func(context.Context, *prober) (string, error) {
	return func(ctx context.Context, p *prober) (string, error) {
		r, err := p.unauthenticated(ctx, path)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(r.status), nil
	}
}

// sample is a line of the Prometheus text format.
var sample = regexp.MustCompile(`(?m)^[a-zA-Z_:][a-zA-Z0-9_:]*(\{.*\})? [-+0-9.eEInfNa]+( [0-9]+)?$`)

func metrics(ctx context.Context, p *prober) (string, error) {
	r, err := p.unauthenticated(ctx, "/metrics")
	if err != nil {
		return "", err
	}
	n := len(sample.FindAll(r.body, -1))
	if n == 0 {
		return "", differs("%s, without a sample in the Prometheus text format", r)
	}
	return fmt.Sprintf("%d samples", n), nil
}

// limits are the values of the three headers.
type limits struct{ limit, left, reset int }

// limitsOf parses the headers. A response without any is "not offered".
func limitsOf(r *response) (limits, error) {
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
		return limits{}, notOffered("%s, without any of the headers", r.request)
	}
	return limits{n[0], n[1], n[2]}, bad
}

func rateHeaders(ctx context.Context, p *prober) (string, error) {
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
			// Older requests may be more than a minute ago, others may use the key.
			if i == 1 && now.left == before.left && now.left == now.limit {
				return "", differs("%s left %d of %d both times", r.request, now.left, now.limit)
			}
			if now.left > now.limit || now.reset > 3600 {
				return "", differs("%s left %d of %d, for %d s", r.request, now.left, now.limit, now.reset)
			}
			before = now
		}
	}
	return "on all five operations", nil
}

// ratePerMinute is the limit of requests per minute.
const ratePerMinute = 100

func rateLimit(ctx context.Context, p *prober) (string, error) {
	began := time.Now()
	a := request{method: "GET", path: "/v1/test", limited: true}
	for n := 1; n <= ratePerMinute+1; n++ {
		r, err := p.do(ctx, a)
		if err != nil {
			return "", err
		}
		if r.status != http.StatusTooManyRequests {
			if l, err := limitsOf(r); err == nil && l.limit != ratePerMinute {
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
	return "", differs("%d requests in %.0f s, and none was refused", ratePerMinute+1, time.Since(began).Seconds())
}

// limited tests the first 429, the response to the n-th request.
func (p *prober) limited(ctx context.Context, r *response, n int) (string, error) {
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
	case l.limit != ratePerMinute || l.left != 0:
		return "", differs("%s, with %d of %d requests left", r, l.left, l.limit)
	}
	// Earlier requests with this key count, of this run or of others.
	if earlier := ratePerMinute + 1 - n; earlier > int(p.tests.Load()) {
		return "", differs("request number %d was refused, after only %d earlier ones in this run; is the key used elsewhere?", n, p.tests.Load())
	}
	other, err := p.do(ctx, request{method: "GET", path: "/v1/live/" + unknownID, limited: true})
	if err != nil {
		return "", err
	}
	if other.status == http.StatusTooManyRequests {
		return "", differs("after %s, another operation also returned 429", r.request)
	}
	return fmt.Sprintf("the request after %d was refused for %d s, other operations were not", ratePerMinute, wait), nil
}
