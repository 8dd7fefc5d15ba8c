// Package store keeps what must outlive a request: sessions with the tokens that
// open them, the events of each stream, media, counters and keys. It is built on NATS JetStream: embedded in the
// process and reached without a port, in memory for a server that ends with
// its program, on disk and synced on every write for one that has a folder; or
// on a cluster of NATS servers, in three replicas, for several nodes.
//
// What was acknowledged is kept: a call that returned nil has been written,
// and with a folder it survives a kill at any moment. Everything expires by
// itself, so that a store does not grow for ever: a session SessionTTL after
// its last change, events EventTTL after they were written, voices VoicesTTL.
//
// A call whose answer does not come is made again until its context ends, and
// finds out whether it had been carried out. Where that stays open, Unknown
// says so of the error.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// How long things are kept. Results of a stream are promised for 24 hours and
// gone within 48; the record that tells about them stays as long as they can.
const (
	SessionTTL = 48 * time.Hour
	EventTTL   = 47 * time.Hour // so that a stream of 20 hours is whole for a day after its end
	// TokenTTL is how long a token opens its session.
	TokenTTL = 10 * time.Minute
)

var (
	// ErrNotFound is a session that is not there, or not any more.
	ErrNotFound = errors.New("no such session")
	// ErrConflict is a step that the session's status does not allow: it has
	// been begun or finished before.
	ErrConflict = errors.New("the session has moved on")
	// ErrToken is a token that opens nothing: wrong, used, expired or another
	// session's. It does not say which.
	ErrToken = errors.New("the token is not valid")
)

// Status is where a session stands: created, running, then done or error.
type Status string

// The statuses.
const (
	Created Status = "created"
	Running Status = "running"
	Done    Status = "done"
	Failed  Status = "error"
)

// Over tells whether nothing can happen to the session any more.
func (s Status) Over() bool { return s == Done || s == Failed }

// Session is the record of one stream.
type Session struct {
	ID      string `json:"id"`
	Account string `json:"account"`
	// Node is the server that created the session, then the one that runs it.
	Node   string `json:"node"`
	Status Status `json:"status"`
	// Input is the JSON object that the session was created with.
	Input   json.RawMessage `json:"input"`
	Created time.Time       `json:"created"`
	// Token is the hash of the token that opens the session, and Attempt whose
	// use of it has opened it.
	Token   string `json:"token"`
	Attempt string `json:"attempt,omitempty"`
	// Expires is when the session can no longer be begun.
	Expires   time.Time  `json:"expires"`
	Started   *time.Time `json:"started,omitempty"`
	Completed *time.Time `json:"completed,omitempty"`
	// Cause says why a session ended, for the operator.
	Cause string `json:"cause,omitempty"`
	// Resume is the earlier session of the account whose voices this one goes
	// on with.
	Resume string `json:"resume,omitempty"`
}

// Sessions keeps records of streams. Every change of status is one
// compare-and-set: of two callers that race, one gets ErrConflict.
type Sessions interface {
	// Create writes a new record with the status Created, to be opened with a
	// token, of which a hash is kept.
	Create(ctx context.Context, s Session, token string) error
	// Get returns a record, or ErrNotFound.
	Get(ctx context.Context, id string) (Session, error)
	// Begin takes a session from Created to Running and uses its token up, in
	// one step. It succeeds once, also among callers that race; a wrong token,
	// one that is used or has expired is ErrToken. The same attempt may be made
	// again when it is not known what became of it.
	Begin(ctx context.Context, id, token string, by Opening, at time.Time) (Session, error)
	// Withdraw makes an attempt to begin a session one that never was and never
	// will be, when it is not known what became of it: the token is as good as
	// before. It is only for who made the attempt, and runs no stream for it.
	Withdraw(ctx context.Context, id, attempt string) error
	// Finish takes a session that is not over to Done or Failed.
	Finish(ctx context.Context, id string, outcome Status, at time.Time, cause string) error
	// Renew restarts the time to live of a session that is still running.
	Renew(ctx context.Context, id string) error
	// Orphans lists the sessions that other nodes left behind: running, or
	// created and expired at the time now. It is for a node that starts and
	// knows that it is alone.
	Orphans(ctx context.Context, node string, now time.Time) ([]Session, error)
}

// Opening is one attempt to begin a session.
type Opening struct {
	Node    string // that runs the stream
	Attempt string // different for every attempt
}

// Journal keeps the events of streams, in order.
type Journal interface {
	// Append adds messages, each one JSON text without a line break, to what
	// is kept of a session. Either all are kept or none. first is the number
	// of the first one, counted from 0 in its session: the same batch may be
	// given again when it is not known whether it has been kept. ErrConflict
	// says that somebody else has amended what is kept: nothing can follow.
	Append(ctx context.Context, session string, first int, messages [][]byte) error
	// Messages returns everything that was appended.
	Messages(ctx context.Context, session string) ([][]byte, error)
}

// Amender ends what others have left open.
type Amender interface {
	// Amend reads everything that is kept of a session and appends what edit
	// makes of it. Nothing comes in between, and whoever wrote before can
	// write no more.
	Amend(ctx context.Context, session string, edit func(kept [][]byte) ([][]byte, error)) error
}
