package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"hubbub/protocol/testkit"
)

// A server exports its requests as spans, with the parent that a client names,
// and without tokens.
func TestServeExportsTraces(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []*spans.Span
	var resources, bodies string
	otlp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var export collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(raw, &export)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		mu.Lock()
		defer mu.Unlock()
		bodies += string(raw)
		for _, resource := range export.ResourceSpans {
			resources += resource.Resource.String()
			for _, scope := range resource.ScopeSpans {
				got = append(got, scope.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(otlp.Close)
	server := startWith(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + otlp.URL, "OTEL_RESOURCE_ATTRIBUTES=zone=test"},
		"serve", "--listen", "127.0.0.1:0", "--api-key", "key-in-no-span", "--tls", "off")
	url := server.url()
	req := testkit.Must(http.NewRequest(http.MethodGet, url+"/v1/test", nil))(t)
	req.Header.Set("Authorization", "Bearer key-in-no-span")
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	resp := testkit.Must(http.DefaultClient.Do(req))(t)
	resp.Body.Close()
	start(t, "live", "--input", talkFile(t, 2), "--server", url, "--api-key", "key-in-no-span", "--output", "json").ends(exitOK)
	server.signal(syscall.SIGTERM) // which sends what is left
	server.ends(exitOK)
	mu.Lock()
	defer mu.Unlock()
	named := map[string]*spans.Span{}
	for _, s := range got {
		named[s.Name] = s
	}
	test, stream := named["GET /v1/test"], named["GET /v1/stream/{id}"]
	if test == nil || stream == nil || named["POST /v1/live"] == nil {
		t.Fatalf("spans: %v", named)
	}
	if string(test.ParentSpanId) != "\xb7\xad\x6b\x71\x69\x20\x33\x31" || !strings.Contains(test.String(), resp.Header.Get("X-Request-Id")) {
		t.Errorf("span %v", test)
	}
	if took := stream.EndTimeUnixNano - stream.StartTimeUnixNano; took < 1e9 || !strings.Contains(stream.String(), "hubbub.stream_id") {
		t.Errorf("the span of a stream of 2 s took %d ns: %v", took, stream)
	}
	for _, want := range []string{`"hubbub"`, `"zone"`, `"test"`} {
		testkit.Contains(t, resources, want)
	}
	for _, secret := range []string{"key-in-no-span", "token="} {
		if strings.Contains(bodies, secret) {
			t.Errorf("a span contains %s", secret)
		}
	}
}
