package localserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

// transferPatience is how long either side of a transfer may stand still.
const transferPatience = 30 * time.Second

// drainTime is how long the rest of an upload that is too large is read and
// thrown away, so that the client is listening when the answer comes.
const drainTime = 5 * time.Second

var errTooLarge = errors.New("larger than media may be")

// upload is PUT on a signed address. The bytes go to the store as they come;
// the object is switched when all of them are there.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	g, leave, ok := s.opened(w, r)
	if !ok {
		return
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), store.MediaWriteTime)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()

	body := &patientReader{body: r.Body, control: http.NewResponseController(w), left: s.options.MaxMedia}
	info, err := s.receive(ctx, g, r.ContentLength, body)
	_ = body.control.SetWriteDeadline(time.Now().Add(answerTimeout)) // the transfer may have outlived the request's
	switch {
	case err == nil:
		s.log.Info("media stored", "request", requestID(r.Context()), "account", g.account, "bytes", info.Size)
		answer(w, http.StatusOK, protocol.MediaLocation{URL: mediaScheme + g.name})
	case errors.Is(err, errTooLarge):
		if r.Header.Get("Expect") == "" { // else the client waits for a word before it sends
			body.drain()
		}
		w.Header().Set("Connection", "close")
		refuse(w, r, http.StatusRequestEntityTooLarge, "The object is too large")
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		refuse(w, r, http.StatusRequestTimeout, "The object did not arrive in time")
	case body.broken:
		w.Header().Set("Connection", "close")
		answer(w, http.StatusBadRequest, protocol.Invalid("", "did not arrive whole"))
	case errors.Is(err, store.ErrFull):
		s.failed(w, r, http.StatusServiceUnavailable, "The store is full; try again later", err)
	default:
		s.failed(w, r, http.StatusServiceUnavailable, "The object could not be stored; try again", err)
	}
}

// receive moves a body into the store. An error leaves the earlier object.
func (s *Server) receive(ctx context.Context, g grant, length int64, body *patientReader) (store.MediaInfo, error) {
	if length > s.options.MaxMedia {
		return store.MediaInfo{}, errTooLarge
	}
	into, err := s.media.CreateMedia(ctx, g.account, g.name, s.now)
	if err != nil {
		return store.MediaInfo{}, err
	}
	defer into.Abort()
	if _, err := io.Copy(into, body); err != nil {
		return store.MediaInfo{}, err
	}
	return into.Commit(nil)
}

// patientReader reads a body of any length: each read has a deadline of its
// own, and there is an end to the bytes.
type patientReader struct {
	body    io.Reader
	control *http.ResponseController
	left    int64 // bytes that may still come
	broken  bool  // the client or the connection failed, not the store
}

func (p *patientReader) Read(buf []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(transferPatience)) // a connection that has none is a test's
	n, err := p.body.Read(buf)
	if p.left -= int64(n); p.left < 0 {
		return 0, errTooLarge
	}
	if err != nil && err != io.EOF {
		p.broken = true
	}
	return n, err
}

func (p *patientReader) drain() {
	_ = p.control.SetReadDeadline(time.Now().Add(drainTime))
	_, _ = io.Copy(io.Discard, p.body)
}

// download is GET and HEAD on a signed address, whole or in ranges.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	g, leave, ok := s.opened(w, r)
	if !ok {
		return
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()

	var content io.ReadSeeker
	var info store.MediaInfo
	kind := "application/octet-stream"
	var err error
	if id, format, result := resultName(g.name); result {
		content, info, err = s.result(ctx, g.account, id, format)
		kind = format.contentType
	} else {
		var object *store.MediaReader
		if object, err = s.media.OpenMedia(ctx, g.account, g.name, s.now()); err == nil {
			content, info = object, object.MediaInfo
		}
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		refuse(w, r, http.StatusNotFound, "Nothing is stored at this location")
		return
	case err != nil:
		s.failed(w, r, http.StatusServiceUnavailable, "The object could not be read; try again", err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("ETag", `"`+info.Sum+`"`)
	h.Set("Cache-Control", "private, no-store")
	// What an account has stored is nobody's page.
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition", "attachment")
	out := &patientWriter{ResponseWriter: w, request: r, control: http.NewResponseController(w)}
	source := &watchedSeeker{ReadSeeker: content}
	http.ServeContent(out, r, "", info.Written, source)
	if source.err != nil && ctx.Err() == nil {
		s.log.Error("a download broke off", "request", requestID(r.Context()), "error", source.err)
		panic(http.ErrAbortHandler) // the client has to see that it is not whole
	}
}

// patientWriter gives every write a deadline of its own, and puts the one
// error that http.ServeContent can come to into JSON.
type patientWriter struct {
	http.ResponseWriter
	request *http.Request
	control *http.ResponseController
	refused bool
}

func (p *patientWriter) Write(b []byte) (int, error) {
	if p.refused {
		return len(b), nil
	}
	_ = p.control.SetWriteDeadline(time.Now().Add(transferPatience)) // a connection that has none is a test's
	return p.ResponseWriter.Write(b)
}

func (p *patientWriter) WriteHeader(status int) {
	if p.refused = status == http.StatusRequestedRangeNotSatisfiable; p.refused {
		p.Header().Del("Content-Disposition")
		refuse(p.ResponseWriter, p.request, status, "The object has no such range")
		return
	}
	p.ResponseWriter.WriteHeader(status)
}

// watchedSeeker remembers that reading failed.
type watchedSeeker struct {
	io.ReadSeeker
	err error
}

func (w *watchedSeeker) Read(p []byte) (int, error) {
	n, err := w.ReadSeeker.Read(p)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}
