package words

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// selfProcess is this binary as a recogniser.
func selfProcess(t *testing.T, behaviour, args string) *process {
	t.Helper()
	t.Setenv(asRecogniser, behaviour)
	r := testkit.Must(New("'"+os.Args[0]+"' "+args, "", "", LiveTimeout))(t)
	return r.(*process)
}

func TestProcess(t *testing.T) {
	r := selfProcess(t, "length", `-a 'two words' "it's"`)
	text, _, err := r.Recognise(t.Context(), audiofile.WAV(make([]float32, 100)), false)
	if want := "RIFF of 244 bytes, -a|two words|it's"; err != nil || text != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
}

func TestProcessThatFails(t *testing.T) {
	for behaviour, want := range map[string]string{
		"exit":  "failed: exit status 3: the model is missing",
		"flood": "writes more than 64 kB",
		"hang":  "did not end within 1 s",
	} {
		r := selfProcess(t, behaviour, "")
		if behaviour == "hang" {
			r.timeout = time.Second
		}
		fails(t, r, want, "")
	}
}

// fails checks the error of a recogniser: what it says and what its hint says.
func fails(t *testing.T, r Recogniser, says, fix string) (e *Error) {
	t.Helper()
	_, _, err := r.Recognise(t.Context(), nil, false)
	if !errors.As(err, &e) || !strings.Contains(e.what, says) || !strings.Contains(e.hint, fix) || e.hint == "" {
		t.Fatalf("%v, %+v, want %q", err, e, says)
	}
	return e
}

func TestCommandsOfWindows(t *testing.T) {
	want := []string{`C:\Program Files\asr\`, `-m`, `models\en.bin`, `\\host\share`}
	if got, err := splitCommand(`"C:\Program Files\asr\" -m models\en.bin \\host\share`, true); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSpecifications(t *testing.T) {
	for spec, want := range map[string]string{
		"":                         "it is empty",
		"'whisper":                 "is not the command of a recogniser: Unterminated",
		"whisper --to http://host": "the recogniser whisper cannot be run",
		"/nowhere/whisper -m x":    "cannot be run: stat",
		"ftp://host":               "is not the address",
		"http://host:99999":        "is not the address",
		"http:///v1":               "is not the address",
		"http://127.0.0.1:70000":   "is not the address",
		"no-such-program-for-asr":  "cannot be run",
	} {
		if _, err := New(spec, "", "", LiveTimeout); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
	}
	for spec, want := range map[string]string{
		"http://localhost:8000":       "http://localhost:8000/v1/audio/transcriptions",
		"https://host/":               "https://host/v1/audio/transcriptions",
		"http://localhost/inference":  "http://localhost/inference",
		"https://host/v2/stt?lang=de": "https://host/v2/stt?lang=de",
	} {
		r, err := New(spec, "", "", LiveTimeout)
		if err != nil || r.(*endpoint).url != want {
			t.Errorf("%q: %+v, %v, want %s", spec, r, err, want)
		}
	}
}

// endpointAt is the recogniser at a server.
func endpointAt(t *testing.T, h http.HandlerFunc) *endpoint {
	t.Helper()
	return testkit.Must(New(protocoltest.Serve(t, h), "whisper-1", "secret", LiveTimeout))(t).(*endpoint)
}

func TestEndpoint(t *testing.T) {
	r := endpointAt(t, func(w http.ResponseWriter, r *http.Request) {
		file, header, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		data, _ := io.ReadAll(file)
		fmt.Fprintf(w, `{"text":" %s %s %s %s %s\n %d bytes","usage":{}}`, r.URL.Path, r.Header.Get("Authorization"), header.Filename, r.FormValue("model"), r.FormValue("response_format"), len(data))
	})
	got, _, err := r.Recognise(t.Context(), audiofile.WAV(make([]float32, 10)), false)
	if want := "/v1/audio/transcriptions Bearer secret turn.wav whisper-1 json 64 bytes"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestEndpointThatFails(t *testing.T) {
	respond := protocoltest.Respond
	for _, c := range []struct {
		name, want, hint string
		respond          http.HandlerFunc
		after            time.Duration
		temporary        bool
	}{
		{"401", "returned 401 Unauthorized", "HUBBUB_WORDS_KEY", respond(401, ""), 0, false},
		{"429", "returned 429", "accepts more later", respond(429, "", "Retry-After", "7"), 7 * time.Second, true},
		{"429 for centuries", "returned 429", "accepts more later", respond(429, "", "Retry-After", "10000000000"), time.Hour, true},
		{"500", "returned 500", "log", respond(500, ""), 0, true},
		{"404", "returned 404", "--words-model", respond(404, ""), 0, false},
		{"cut off", "cannot be reached", "Check that it runs", respond(200, `{"text":"a"}`, "Content-Length", "100"), 0, true},
		{"HTML", "does not respond with a JSON object", "--words", respond(200, "<!doctype html>"), 0, false},
		{"no text", "does not respond with a JSON object", "--words", respond(200, `{"error":"x"}`), 0, false},
		{"flood", "more than 64 kB", "--words", respond(200, `{"text":"`+strings.Repeat("a", 100_000)+`"}`), 0, false},
		{"hang", "no response for 1 s", "--words", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := endpointAt(t, c.respond)
			if c.name == "hang" {
				r.client.Timeout = time.Second
			}
			if e := fails(t, r, c.want, c.hint); e.retryAfter != c.after || e.temporary != c.temporary {
				t.Errorf("%+v", e)
			}
		})
	}
	closed := testkit.Must(New("http://127.0.0.1:1", "", "", LiveTimeout))(t)
	if e := fails(t, closed, "cannot be reached: connect", ""); !strings.Contains(e.what, "refused") {
		t.Errorf("a closed port: %v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := closed.Recognise(ctx, nil, false); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// Audio goes to the host that was named, also when that redirects.
func TestEndpointThatRedirects(t *testing.T) {
	var received atomic.Int32
	other := protocoltest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received.Add(1) }))
	to := "/here"
	r := endpointAt(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/here" {
			_, _ = io.WriteString(w, `{"text":"words"}`)
			return
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	})
	if text, _, err := r.Recognise(t.Context(), nil, false); err != nil || text != "words" {
		t.Errorf("on the same host: %q, %v", text, err)
	}
	for _, to = range []string{strings.Replace(other, "127.0.0.1", "localhost", 1), "/again"} {
		fails(t, r, "returned 307", "redirects to")
	}
	secure := httptest.NewTLSServer(http.RedirectHandler(other, http.StatusTemporaryRedirect)) // the same host without TLS
	defer secure.Close()
	r.url, r.client.Transport = secure.URL, secure.Client().Transport
	fails(t, r, "returned 307", "redirects to")
	testkit.Equal(t, received.Load(), 0, "requests to another host, or to one without TLS")
}

// TestPocketsphinx runs a real recogniser. Its accuracy does not matter.
func TestPocketsphinx(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a recogniser")
	}
	if _, err := exec.LookPath("pocketsphinx_continuous"); err != nil {
		if os.Getenv("HUBBUB_REQUIRE_POCKETSPHINX") != "" {
			t.Fatal("pocketsphinx is required and not installed")
		}
		t.Skip("pocketsphinx is not installed")
	}
	r := testkit.Must(New("pocketsphinx_continuous -infile /dev/stdin -logfn /dev/null", "", "", LiveTimeout))(t)
	r.(*process).timeout = 5 * time.Minute // on a busy machine
	text, _, err := r.Recognise(t.Context(), audiofile.WAV(demoSpeech(t)), false)
	if err != nil || len(strings.Fields(text)) < 3 {
		t.Errorf("got %q, %v", text, err)
	}
	t.Logf("%q", text)
}

// A recogniser has the time that its user can wait: a recording more than a live session.
func TestTimeouts(t *testing.T) {
	for _, timeout := range []time.Duration{LiveTimeout, RecordingTimeout} {
		e := testkit.Must(New("http://localhost:8000", "", "", timeout))(t)
		p := testkit.Must(New("'"+os.Args[0]+"'", "", "", timeout))(t)
		testkit.Equal(t, e.(*endpoint).client.Timeout, timeout, "an endpoint has")
		testkit.Equal(t, p.(*process).timeout, timeout, "a process has")
	}
}

// The password in an address that cannot be used is not displayed.
func TestAddressesShowNoSecret(t *testing.T) {
	for _, spec := range []string{"ftp://user:hunter2@host", "http://user:%hunter2@host", "http://user:hunter2/x@host", "http://?key=hunter2"} {
		if _, err := New(spec, "", "", LiveTimeout); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", spec, err)
		}
	}
	endpoint := testkit.Must(New("http://user:hunter2@127.0.0.1:1", "", "", LiveTimeout))(t)
	if _, _, err := endpoint.Recognise(context.Background(), nil, false); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}
