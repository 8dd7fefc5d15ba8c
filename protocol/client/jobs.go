package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// maxJob bounds the status of a job, in bytes: its output is long for a recording
// of 24 hours.
const maxJob = 256 << 20

// JobFilter selects the jobs of a list.
type JobFilter struct {
	Limit  int    // 1 to 100; 0 = the service's default
	Status string // "" = any
	Cursor string // of the page before; "" = the newest jobs
}

// Jobs returns a page of the account's jobs, newest first, with their progress.
func (c *Client) Jobs(ctx context.Context, f JobFilter) (list protocol.JobList, err error) {
	query := url.Values{"progress": {"true"}}
	if f.Limit > 0 {
		query.Set("limit", strconv.Itoa(f.Limit))
	}
	if f.Status != "" {
		query.Set("status", f.Status)
	}
	if f.Cursor != "" {
		query.Set("cursor", f.Cursor)
	}
	err = c.call(ctx, http.MethodGet, "/v2/jobs?"+query.Encode(), &list)
	return list, err
}

// Job returns a job with its output.
func (c *Client) Job(ctx context.Context, id string) (protocol.JobStatus, error) {
	return c.job(ctx, http.MethodGet, id)
}

// CancelJob ends a job that is not over.
func (c *Client) CancelJob(ctx context.Context, id string) (protocol.JobStatus, error) {
	return c.job(ctx, http.MethodDelete, id)
}

func (c *Client) job(ctx context.Context, method, id string) (s protocol.JobStatus, err error) {
	if !validID(id) {
		return s, hint.Errorf("'hubbub jobs' lists the ids.", "%q is not the id of a job", protocol.Clean(id, 64))
	}
	err = c.call(ctx, method, "/v1/jobs/"+url.PathEscape(id), &s)
	if response, ok := errors.AsType[*ResponseError](err); ok && response.Status == http.StatusNotFound && response.RequestID != "" {
		response.hint = "A job can be read for a day after its end, with a key of the account that created it; check the id and the key."
	}
	return s, err
}
