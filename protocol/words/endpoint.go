package words

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/protocol"
)

const (
	// maxVerbose bounds a response with the times of words, in bytes.
	maxVerbose = 1 << 20
	// maxRedirects bounds the redirections of a request.
	maxRedirects = 5
)

// endpoint is an OpenAI-compatible transcription endpoint.
type endpoint struct {
	url        string
	host       string // for messages
	model, key string
	client     *http.Client
	untimed    atomic.Bool // it refuses to give times
}

func newEndpoint(u *url.URL, model, key string, timeout time.Duration) *endpoint {
	return &endpoint{url: u.String(), host: u.Host, model: model, key: key, client: &http.Client{Timeout: timeout, CheckRedirect: sameHost}}
}

// sameHost keeps audio and key from a host that the user has not named, and from a connection
// without TLS in place of one with it. Such redirections are the response.
func sameHost(r *http.Request, via []*http.Request) error {
	named := via[0].URL
	if r.URL.Hostname() != named.Hostname() || named.Scheme == "https" && r.URL.Scheme != "https" || len(via) == maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// Recognise posts the file as a form. Timed, it asks for the times of words, and once
// without them if the endpoint refuses that.
func (e *endpoint) Recognise(ctx context.Context, wav []byte, timed bool) (string, []Word, error) {
	if timed && !e.untimed.Load() {
		text, body, err := e.post(ctx, wav, maxVerbose, [][2]string{{"response_format", "verbose_json"}, {"timestamp_granularities[]", "word"}})
		if refused, ok := errors.AsType[*Error](err); !ok || !refused.badRequest {
			return text, checkWords(wordsIn(body), float64(len(wav)-audiofile.WAVHeaderBytes)/(2*sampleRate)), err
		}
	}
	text, _, err := e.post(ctx, wav, maxText, [][2]string{{"response_format", "json"}})
	if timed && err == nil {
		e.untimed.Store(true)
	}
	return text, nil, err
}

// post posts the file with further fields of the form. It returns the text and all of
// a response of at most so many bytes.
func (e *endpoint) post(ctx context.Context, wav []byte, most int64, fields [][2]string) (text string, body []byte, err error) {
	if e.model != "" {
		fields = append(fields, [2]string{"model", e.model})
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, err := w.CreateFormFile("file", "turn.wav")
	if err == nil {
		_, err = file.Write(wav)
	}
	for _, f := range fields {
		err = errors.Join(err, w.WriteField(f[0], f[1]))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return "", nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, &form)
	if err != nil {
		return "", nil, err
	}
	request.Header.Set("Content-Type", w.FormDataContentType())
	request.Header.Set("Accept", "application/json")
	if e.key != "" {
		request.Header.Set("Authorization", "Bearer "+e.key)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return "", nil, e.unreachable(ctx, err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, most+1))
	var parsed struct {
		Text *string `json:"text"`
	}
	wrong := func(format string, args ...any) (string, []byte, error) {
		return "", nil, &Error{what: "the recogniser at " + e.host + " " + fmt.Sprintf(format, args...), hint: "Check that --words is the address of a transcription endpoint."}
	}
	switch {
	case err != nil:
		return "", nil, e.unreachable(ctx, err)
	case response.StatusCode != http.StatusOK:
		return "", nil, e.refused(response)
	case int64(len(body)) > most:
		return wrong("responds with more than %d kB", most>>10)
	case json.Unmarshal(body, &parsed) != nil || parsed.Text == nil:
		return wrong("does not respond with a JSON object that has a text")
	case len(*parsed.Text) > maxText:
		return wrong("responds with more than %d kB", maxText>>10)
	}
	return clean(*parsed.Text), body, nil
}

// unreachable is the error of a request without a complete response.
func (e *endpoint) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		if wrapped.Timeout() {
			err = fmt.Errorf("no response for %d s", int(e.client.Timeout.Seconds()))
		} else {
			err = wrapped.Err
		}
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok { // without the address again
		err = dial.Err
	}
	return &Error{what: fmt.Sprintf("the recogniser at %s cannot be reached: %v", e.host, err), hint: "Check that it runs, and the address of --words.", temporary: true}
}

// refused is the error of a response with another status than 200.
func (e *endpoint) refused(r *http.Response) error {
	out := &Error{what: fmt.Sprintf("the recogniser at %s returned %d %s", e.host, r.StatusCode, http.StatusText(r.StatusCode)),
		temporary: r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500}
	switch r.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		out.hint = "Give the address that it redirects to in --words."
	case http.StatusUnauthorized, http.StatusForbidden:
		out.hint = "Set its key in HUBBUB_WORDS_KEY."
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		out.hint = "Check the address and the path of --words, and --words-model."
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		out.hint, out.badRequest = "Check --words-model.", true
	case http.StatusTooManyRequests:
		out.hint = "It limits requests, and accepts more later."
	default:
		out.hint = "See the recogniser's log."
	}
	out.retryAfter = min(protocol.RetryAfter(r.Header), time.Hour)
	return out
}
