package localserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/jobs"
	"hubbub/localserver/outbound"
	"hubbub/localserver/store"
	"hubbub/protocol"
)

const (
	// jobStatusRoute is the operation that clients poll.
	jobStatusRoute = "GET /v1/jobs/{id}"
	// ownModel is the name under which a request may ask for this engine.
	ownModel = "hubbub"
	// maxJobs is the most jobs in one response, and defaultJobs how many unless
	// asked.
	maxJobs, defaultJobs = 100, 20
)

// createJob is POST /v1/diarize, /v1/voiceprint and /v1/identify.
func (s *Server) createJob(kind string, limit int64) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		body, err := readBody(w, r, limit)
		if err != nil {
			return err
		}
		request, warnings, invalid := protocol.ParseJob(kind, body)
		if invalid != nil {
			return invalid
		}
		if err := s.checkJob(request); err != nil {
			return err
		}
		if request.Model != "" && !strings.EqualFold(request.Model, ownModel) {
			warnings = append(warnings, fmt.Sprintf("The model %s is not available; %s was used.", protocol.Clean(request.Model, 100), ownModel))
		}
		if request.Transcription && request.WordsModel != "" {
			warnings = append(warnings, fmt.Sprintf("The model %s is not available for transcription; the recogniser of this server was used.", protocol.Clean(request.WordsModel, 100)))
		}
		select {
		case <-s.streams.Drain():
			return refused(http.StatusServiceUnavailable, "The server is stopping and takes no new jobs")
		default: // also while it drains
		}
		raw, err := json.Marshal(request)
		if err != nil { // strings and numbers always marshal
			panic(err)
		}
		id := uuid.Must(uuid.NewV7()) // never fails: the source of random numbers ends the program instead
		now := s.now().UTC()
		j := store.Job{ID: id.String(), Account: caller(r.Context()).Account, Kind: kind, Request: raw, Status: store.JobCreated, Created: now, Updated: now}
		if request.Webhook != "" {
			j.Hook = &store.JobHook{URL: request.Webhook, StatusOnly: request.WebhookStatusOnly}
		}
		ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
		defer cancel()
		switch err := s.store.CreateJob(ctx, j); {
		case errors.Is(err, store.ErrTooLarge):
			return refused(http.StatusRequestEntityTooLarge, bodyTooLarge)
		case errors.Is(err, store.ErrQuota):
			return refused(http.StatusServiceUnavailable, "Too many jobs of the account are waiting; try again later")
		case err != nil:
			return unavailable("The job could not be queued; try again later", err)
		}
		s.log.Info("job created", "request", requestID(r.Context()), "job", j.ID, "kind", kind, "account", j.Account)
		return respond(w, http.StatusOK, protocol.JobAccepted{JobID: j.ID, Status: protocol.JobCreated, Warning: strings.Join(warnings, " ")})
	}
}

// checkJob checks what depends on this server.
func (s *Server) checkJob(r protocol.JobRequest) error {
	if name, stored := strings.CutPrefix(r.URL, protocol.MediaScheme); stored {
		if _, _, ok := parseResultName(name); ok {
			return protocol.Invalid("url", "must be audio; the turns of a stream are text")
		}
	} else {
		if len(s.options.FetchFrom) == 0 {
			return protocol.Invalid("url", "must be a media:// location; this server fetches no other addresses (the operator allows hosts with --fetch-from)")
		}
		if err := checkOutbound(s.fetch, r.URL); err != nil {
			return protocol.Invalid("url", "%v", err)
		}
	}
	if r.Webhook != "" {
		if err := checkOutbound(s.hooks, r.Webhook); err != nil {
			return protocol.Invalid("webhook", "%v", err)
		}
	}
	if r.Transcription && s.options.Words == nil {
		return protocol.Invalid("transcription", "is not available: this server has no speech recogniser (the operator configures one with --words URL or --words 'COMMAND ARGS')")
	}
	return checkVoiceprints(r.Enrolment)
}

// checkOutbound checks an address whose form has been checked.
func checkOutbound(p outbound.Policy, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	return p.Check(u)
}

// findJob returns the record of a job of the caller.
func (s *Server) findJob(ctx context.Context, r *http.Request) (j store.Job, revision uint64, err error) {
	id, err := pathID(r), store.ErrNotFound
	if store.IsID(id) {
		j, revision, err = s.store.Job(ctx, caller(r.Context()).Account, id, s.now())
	}
	return j, revision, storeError(err, "There is no job with this id", "The job could not be looked up; try again")
}

// resultTimeout is how long a request for a result waits for the store.
const resultTimeout = 15 * time.Second

// jobStatus is GET /v1/jobs/{id}.
func (s *Server) jobStatus(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	j, _, err := s.findJob(ctx, r)
	if err != nil {
		return err
	}
	reading, stop := context.WithTimeout(r.Context(), resultTimeout)
	defer stop()
	output, err := jobs.Output(reading, s.store, j, s.now())
	if err != nil { // `hubbub store purge` deletes it
		return storeError(err, "The result of this job is not stored any more", "The result of the job could not be read; try again")
	}
	return respond(w, http.StatusOK, protocol.JobStatus{JobID: j.ID, Status: string(j.Status), CreatedAt: protocol.FormatTime(j.Created), UpdatedAt: protocol.FormatTime(j.Updated), Output: output})
}

// cancelJob is DELETE /v1/jobs/{id}: it ends a job that is not over.
func (s *Server) cancelJob(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	for {
		j, revision, err := s.findJob(ctx, r)
		if err != nil {
			return err
		}
		was := j.Status
		if !was.Over() {
			j.Status, j.Updated = store.JobCanceled, s.now().UTC()
			if err = s.store.AdmitDeletion(); err == nil {
				_, err = s.store.UpdateJob(ctx, j, revision)
			}
		}
		switch {
		case errors.Is(err, store.ErrConflict): // it was changed meanwhile
			continue
		case err != nil:
			return unavailable("The job could not be canceled; try again", err)
		case j.Status != store.JobCanceled:
			return refused(http.StatusConflict, "The job is over: "+string(j.Status))
		}
		if !was.Over() {
			s.jobs.Cancel(j, was != store.JobRunning)
			s.log.Info("job canceled", "request", requestID(r.Context()), "job", j.ID)
		}
		return respond(w, http.StatusOK, protocol.JobStatus{JobID: j.ID, Status: string(j.Status), CreatedAt: protocol.FormatTime(j.Created), UpdatedAt: protocol.FormatTime(j.Updated)})
	}
}

// listJobs is GET /v2/jobs.
func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, status, cursor, err := jobFilter(q)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	found, err := s.store.ListJobs(ctx, caller(r.Context()).Account, s.now(), func(j store.Job) bool {
		return (status == "" || string(j.Status) == status) && (cursor == "" || j.ID < cursor)
	})
	if err != nil {
		return unavailable("The jobs could not be listed; try again", err)
	}
	list := protocol.JobList{Items: []protocol.JobItem{}}
	for _, j := range found[:min(limit, len(found))] {
		item := protocol.JobItem{ID: j.ID, Status: string(j.Status), CreatedAt: protocol.FormatTime(j.Created)}
		if q.Get("progress") == "true" {
			item.Kind, item.Progress = j.Kind, &j.Progress
		}
		list.Items = append(list.Items, item)
	}
	if len(found) > limit {
		list.NextCursor = &list.Items[limit-1].ID
	}
	return respond(w, http.StatusOK, list)
}

// jobFilter reads the parameters of a list. An empty one is not given.
func jobFilter(q url.Values) (limit int, status, cursor string, err error) {
	limit = defaultJobs
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxJobs {
			return 0, "", "", protocol.Invalid("limit", "must be a whole number of 1 to %d", maxJobs)
		}
		limit = n
	}
	if status = q.Get("status"); status != "" && !slices.Contains(protocol.JobStates(), status) {
		return 0, "", "", protocol.Invalid("status", "must be one of %s", strings.Join(protocol.JobStates(), ", "))
	}
	if cursor = strings.ToLower(q.Get("cursor")); cursor != "" && !store.IsID(cursor) {
		return 0, "", "", protocol.Invalid("cursor", "must be the nextCursor of an earlier response")
	}
	if !isBool(q.Get("progress")) {
		return 0, "", "", protocol.Invalid("progress", "must be true or false")
	}
	return limit, status, cursor, nil
}
