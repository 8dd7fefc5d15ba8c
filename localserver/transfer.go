package localserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

// transferTimeout is how long a transfer may make no progress.
const transferTimeout = 30 * time.Second

// addressUsed is the message for an upload to an address that a complete upload has used.
const addressUsed = "This address was used for an upload; ask for a new one"

// notStored is the message for an upload that the store has failed to take.
const notStored = "The object could not be stored; try again"

var errTooLarge = refused(http.StatusRequestEntityTooLarge, "The object is too large")

// upload is PUT on a signed address. The bytes go to the store as they arrive;
// the object is replaced when all of them are stored.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) error {
	body := &uploadReader{body: r.Body, control: http.NewResponseController(w), left: s.options.MaxMedia}
	g, release, err := s.beginTransfer(r)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(r.Context(), store.MediaWriteTime)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()

	lookUp, done := context.WithTimeout(ctx, storeTimeout)
	used, err := s.store.MediaUsed(lookUp, g.ID)
	done()
	switch {
	case err != nil:
		return unavailable(notStored, err)
	case r.Header.Get("Content-Range") != "": // stored, it would be taken for the whole object
		return protocol.Invalid("", "is a part of an object; upload all of it")
	case r.Header.Get("If-Match") != "", r.Header.Get("If-None-Match") != "", r.Header.Get("If-Unmodified-Since") != "":
		// Stored, it would replace an object that the condition protects.
		return protocol.Invalid("", "has a condition; an upload always replaces the object")
	}
	receive := s.receive
	if used {
		receive = s.receiveAgain
	}
	info, err := receive(ctx, g, r.ContentLength, body)
	_ = body.control.SetWriteDeadline(time.Now().Add(responseTimeout)) // the deadline of the request may have passed meanwhile
	over, isOver := errors.AsType[*store.QuotaError](err)
	switch {
	case err == nil:
		s.log.Info("media stored", "request", requestID(r.Context()), "account", g.Subject, "bytes", info.Size)
		return respond(w, http.StatusOK, protocol.MediaLocation{URL: protocol.MediaScheme + g.Name})
	case isOver:
		w.Header().Set("Connection", "close")
		return refused(http.StatusRequestEntityTooLarge, overQuota(over))
	case errors.Is(err, errTooLarge):
		w.Header().Set("Connection", "close")
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return refused(http.StatusRequestTimeout, "The object did not arrive in time")
	case body.failed:
		w.Header().Set("Connection", "close")
		return protocol.Invalid("", "did not arrive whole")
	case errors.Is(err, store.ErrUsed):
		return refused(http.StatusForbidden, addressUsed)
	}
	return unavailable(notStored, err)
}

// receive writes a body to the store. After an error the earlier object
// remains.
func (s *Server) receive(ctx context.Context, g grant, length int64, body *uploadReader) (store.MediaInfo, error) {
	if length > s.options.MaxMedia {
		return store.MediaInfo{}, errTooLarge
	}
	object, err := s.store.CreateMedia(ctx, g.Subject, g.Name, s.now)
	if err != nil {
		return store.MediaInfo{}, err
	}
	defer object.Abort()
	object.Bind(g.ID)
	if length > 0 { // known; the rest is refused before it is sent
		if err := object.Reserve(length); err != nil {
			return store.MediaInfo{}, err
		}
	}
	if _, err := io.Copy(object, body); err != nil {
		return store.MediaInfo{}, err
	}
	info, err := object.Commit(nil)
	if errors.Is(err, store.ErrUsed) { // by an earlier attempt, perhaps, that was still being stored
		return s.stored(ctx, g, info.Sum)
	}
	return info, err
}

// receiveAgain reads a body that is sent to an address that is used up. A client that did
// not get the response sends the same object again, and gets it now, as long as the
// object is stored. The error for any other body is store.ErrUsed.
func (s *Server) receiveAgain(ctx context.Context, g grant, length int64, body *uploadReader) (store.MediaInfo, error) {
	info, err := s.stored(ctx, g, "")
	if err != nil {
		return info, err
	}
	if length >= 0 && length != info.Size {
		return store.MediaInfo{}, store.ErrUsed
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, body); err != nil {
		return store.MediaInfo{}, err
	}
	return s.stored(ctx, g, hex.EncodeToString(sum.Sum(nil)))
}

// stored returns the object of an address that is used up. The error is store.ErrUsed if
// there is none with a sum, which is "" for any.
func (s *Server) stored(ctx context.Context, g grant, sum string) (store.MediaInfo, error) {
	object, err := s.store.OpenMedia(ctx, g.Subject, g.Name, s.now())
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.MediaInfo{}, store.ErrUsed
	case err != nil:
		return store.MediaInfo{}, err
	}
	_ = object.Close() // what remains is swept
	if sum != "" && sum != object.Sum {
		return store.MediaInfo{}, store.ErrUsed
	}
	return object.MediaInfo, nil
}

// uploadReader reads the body of an upload. Each read has its own deadline, and
// the length is limited.
type uploadReader struct {
	body    io.Reader
	control *http.ResponseController
	left    int64 // bytes that may still arrive
	failed  bool  // the client or the connection failed, not the store
}

func (p *uploadReader) Read(buf []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(transferTimeout)) // not supported in some tests only
	n, err := p.body.Read(buf)
	if p.left -= int64(n); p.left < 0 {
		return 0, errTooLarge
	}
	if err != nil && err != io.EOF {
		p.failed = true
	}
	return n, err
}

// download is GET and HEAD on a signed address, whole or in ranges.
func (s *Server) download(w http.ResponseWriter, r *http.Request) error {
	g, release, err := s.beginTransfer(r)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()

	var content io.ReadSeeker
	var info store.MediaInfo
	kind := "application/octet-stream"
	if id, format, ok := parseResultName(g.Name); ok {
		content, info, err = s.result(ctx, g.Subject, id, format)
		kind = format.contentType
	} else {
		var object *store.MediaReader
		if object, err = s.store.OpenMedia(ctx, g.Subject, g.Name, s.now()); err == nil {
			content, info = object, object.MediaInfo
			defer func() { _ = object.Close() }() // what remains is swept
		}
	}
	if err != nil {
		return storeError(err, nothingStored, "The object could not be read; try again")
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("ETag", `"`+info.Sum+`"`)
	h.Set("Cache-Control", "private, no-store")
	// A browser must not render what an account has stored.
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition", "attachment")
	if !strings.HasPrefix(r.Header.Get("Range"), "bytes=") {
		r.Header.Del("Range") // a unit that is not known does not count (RFC 9110, 14.2)
	}
	out := &downloadWriter{ResponseWriter: w, request: r, control: http.NewResponseController(w)}
	source := &errorRecorder{ReadSeeker: content}
	http.ServeContent(out, r, "", info.Written, source)
	if source.err != nil && ctx.Err() == nil {
		s.log.Error("a download was aborted", "request", requestID(r.Context()), "error", source.err)
		panic(http.ErrAbortHandler) // so that the client sees that it is incomplete
	}
	return nil
}

// downloadWriter gives each write its own deadline, and writes the errors that
// http.ServeContent reports in JSON.
type downloadWriter struct {
	http.ResponseWriter
	request *http.Request
	control *http.ResponseController
	refused bool
}

func (w *downloadWriter) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(transferTimeout)) // not supported in some tests only
	return w.ResponseWriter.Write(b)
}

func (w *downloadWriter) WriteHeader(status int) {
	message := map[int]string{
		http.StatusPreconditionFailed:           "The object does not meet the condition of the request",
		http.StatusRequestedRangeNotSatisfiable: "The object has no such range",
	}[status]
	if w.refused = message != ""; w.refused {
		w.Header().Del("Content-Disposition")
		refuse(w.ResponseWriter, w.request, status, message)
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// errorRecorder records that reading failed.
type errorRecorder struct {
	io.ReadSeeker
	err error
}

func (e *errorRecorder) Read(p []byte) (int, error) {
	n, err := e.ReadSeeker.Read(p)
	if err != nil && err != io.EOF {
		e.err = err
	}
	return n, err
}
