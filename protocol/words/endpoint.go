package words

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// requestTimeout bounds a request to an endpoint, answer included.
const requestTimeout = 30 * time.Second

// endpoint is an OpenAI-compatible transcription endpoint.
type endpoint struct {
	url        string
	host       string // for people
	model, key string
	client     *http.Client
}

func newEndpoint(u *url.URL, model, key string) *endpoint {
	return &endpoint{url: u.String(), host: u.Host, model: model, key: key, client: &http.Client{Timeout: requestTimeout}}
}

// Recognise posts the file as a form.
func (e *endpoint) Recognise(ctx context.Context, wav []byte) (string, error) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, err := w.CreateFormFile("file", "turn.wav")
	if err == nil {
		_, err = file.Write(wav)
	}
	if e.model != "" {
		err = errors.Join(err, w.WriteField("model", e.model))
	}
	if err = errors.Join(err, w.WriteField("response_format", "json"), w.Close()); err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, &form)
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", w.FormDataContentType())
	request.Header.Set("Accept", "application/json")
	if e.key != "" {
		request.Header.Set("Authorization", "Bearer "+e.key)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return "", e.unreachable(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxText+1))
	switch {
	case err != nil:
		return "", e.unreachable(ctx, err)
	case response.StatusCode != http.StatusOK:
		return "", e.refused(response)
	case len(body) > maxText:
		return "", &Error{what: fmt.Sprintf("the recogniser at %s answers with more than %d kB", e.host, maxText>>10), hint: "Check that --words is the address of a transcription endpoint."}
	}
	var answer struct {
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Text == nil {
		return "", &Error{what: fmt.Sprintf("the recogniser at %s does not answer with a JSON object that has a text", e.host), hint: "Check that --words is the address of a transcription endpoint."}
	}
	return clean(*answer.Text), nil
}

// unreachable is the error of a request without a complete answer.
func (e *endpoint) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		if wrapped.Timeout() {
			err = fmt.Errorf("no answer for %d s", int(e.client.Timeout.Seconds()))
		} else {
			err = wrapped.Err
		}
	}
	return &Error{what: fmt.Sprintf("the recogniser at %s cannot be reached: %v", e.host, err), hint: "Check that it runs, and the address of --words."}
}

// refused is the error of an answer with another status than 200.
func (e *endpoint) refused(r *http.Response) error {
	out := &Error{what: fmt.Sprintf("the recogniser at %s answers %d %s", e.host, r.StatusCode, http.StatusText(r.StatusCode))}
	switch r.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		out.hint = "Set its key in HUBBUB_WORDS_KEY."
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		out.hint = "Check the address and the path of --words, and --words-model."
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		out.hint = "Check --words-model."
	case http.StatusTooManyRequests:
		out.hint = "It limits requests; words continue by themselves."
	default:
		out.hint = "See the recogniser's log; words continue by themselves when it works again."
	}
	if s, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && s > 0 {
		out.retryAfter = min(time.Duration(s)*time.Second, time.Hour)
	} else if at, err := http.ParseTime(r.Header.Get("Retry-After")); err == nil {
		out.retryAfter = min(max(time.Until(at), 0), time.Hour)
	}
	return out
}
