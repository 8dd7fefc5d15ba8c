package localserver

import (
	"encoding/binary"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"hubbub/capture/audiofile"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// metric reads one number of GET /metrics.
func (h *host) metric(name string) float64 {
	h.t.Helper()
	res := h.do("GET", "/metrics", "", nil)
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindSubmatch(res.body)
	if res.StatusCode != 200 || m == nil {
		h.t.Fatalf("no %s in %d %s", name, res.StatusCode, res.body)
	}
	v := testkit.Must(strconv.ParseFloat(string(m[1]), 64))(h.t)
	return v
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	h := serve(t)
	s := h.open()
	s.chunks(3)
	_ = s.WriteMessage(websocket.BinaryMessage, []byte("no chunk"))
	s.next() // the start, or the error
	testkit.Eventually(t, "an open stream", func() bool { return h.metric("hubbub_streams_open") == 1 })
	s.end()
	s.rest()
	h.becomes(s.id, protocol.StatusDone)
	h.do("GET", "/v1/test", "wrong", nil)
	h.counters.SlowWatchers.Add(5)
	h.counters.Watchers.Add(7)
	h.do("BREW", "/v1/"+strings.Repeat("x", 100), "", nil)
	testkit.Eventually(t, "the end of the stream", func() bool { return h.metric("hubbub_streams_open") == 0 })
	for name, want := range map[string]float64{
		"hubbub_streams_opened_total":                                                1,
		`hubbub_streams_ended_total{status="done"}`:                                  1,
		`hubbub_streams_ended_total{status="error"}`:                                 0,
		"hubbub_audio_chunks_total":                                                  3,
		"hubbub_events_total":                                                        2,
		"hubbub_watchers_slow_total":                                                 5,
		"hubbub_watchers_total":                                                      7,
		`hubbub_dropped_total{what="frame"}`:                                         1,
		"hubbub_engine_chunk_seconds_count":                                          3,
		"hubbub_engine_lag_seconds_count":                                            3,
		`hubbub_requests_total{code="401",method="GET",route="GET /v1/test"}`:        1,
		`hubbub_requests_total{code="404",method="other",route="none"}`:              1,
		`hubbub_requests_total{code="101",method="GET",route="GET /v1/stream/{id}"}`: 1,
		`hubbub_requests_total{code="200",method="POST",route="POST /v1/live"}`:      1,
	} {
		testkit.Eventually(t, name, func() bool { return h.metric(name) == want })
	}
	body := string(h.do("GET", "/metrics", "", nil).body)
	for _, secret := range []string{testKey, s.id, "default", "token"} {
		if strings.Contains(body, secret) {
			t.Errorf("the metrics contain %q", secret)
		}
	}
	testkit.NoError(t, h.store.Close())
	h.do("POST", "/v1/live", testKey, nil).apiError(t, 503)
	testkit.Equal(t, h.metric(`hubbub_store_errors_total{call="create stream"}`), 1, "failures of the store")
}

// With KeepAudio the audio of a stream that is done can be downloaded, sample
// for sample; that of a stream that failed cannot.
func TestKeptAudio(t *testing.T) {
	t.Parallel()
	h := serve(t, func(o *setup) { o.KeepAudio = true })
	s := h.open()
	chunk := make([]byte, protocol.ChunkBytes)
	for i := range protocol.ChunkSamples {
		binary.LittleEndian.PutUint32(chunk[4*i:], 0x3f000000) // 0.5
	}
	for range 4 {
		testkit.NoError(t, s.WriteMessage(websocket.BinaryMessage, chunk))
	}
	s.end()
	s.rest()
	h.becomes(s.id, protocol.StatusDone)
	samples := slices.Repeat([]float32{0.5}, 4*protocol.ChunkSamples)
	if wav := h.get("media://live/" + s.id + "/audio.wav"); wav != string(audiofile.WAV(samples)) {
		t.Errorf("audio.wav has %d bytes, or others than were sent", len(wav))
	}

	lost := h.open()
	lost.chunks(2)
	_ = lost.Close()
	h.becomes(lost.id, protocol.StatusError)
	h.askFor("output", "media://live/"+lost.id+"/audio.wav").apiError(t, 404)
}

// Spans name the stream or the job of a request.
func TestSpans(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	h := serve(t, func(o *setup) { o.Jobs, o.Traces = -1, trace.NewTracerProvider(trace.WithSpanProcessor(spans)) })
	stream, job := h.create().ID, h.submit("diarize", `{"url":"media://x"}`).JobID
	h.status(stream)
	h.do("GET", "/v1/jobs/"+job, testKey, nil)
	want := map[string]string{"GET /v1/live/{id}": "hubbub.stream_id=" + stream, "GET /v1/jobs/{id}": "hubbub.job_id=" + job}
	testkit.Eventually(t, "four spans", func() bool { return len(spans.Ended()) == 4 })
	for _, span := range spans.Ended() {
		var ids string
		for _, a := range span.Attributes() {
			if a.Key == "hubbub.stream_id" || a.Key == "hubbub.job_id" {
				ids += string(a.Key) + "=" + a.Value.Emit()
			}
		}
		testkit.Equal(t, ids, want[span.Name()], span.Name())
	}
}

// With an address of their own, the metrics are there and only there.
func TestMetricsAtTheirOwnAddress(t *testing.T) {
	t.Parallel()
	h := serve(t, func(o *setup) { o.MetricsAddr = "127.0.0.1:0" })
	h.do("GET", "/metrics", "", nil).apiError(t, 404)
	own := clientOf(t, "http://"+h.MetricsAddr().String(), nil)
	testkit.Equal(t, own.metric("hubbub_streams_limit"), float64(h.streams.Limit()), "limit")
	for _, path := range []string{"/v1/test", "/healthz", "/openapi.json"} {
		own.do("GET", path, testKey, nil).apiError(t, 404)
	}
	testkit.NoError(t, h.Shutdown(t.Context()))
	if conn, err := net.Dial("tcp", h.MetricsAddr().String()); err == nil {
		_ = conn.Close()
		t.Error("the metrics are still served after the shutdown")
	}
}
