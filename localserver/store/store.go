// Package store keeps what must outlive a request: sessions, stream tokens and
// the events of each stream. It is built on NATS JetStream: embedded in the
// process and reached without a port, in memory for a server that ends with
// its program, on disk and synced on every write for one that has a folder; or
// on a cluster of NATS servers, in three replicas, for several nodes.
//
// What was acknowledged is kept: a call that returned nil has been written,
// and with a folder it survives a kill at any moment. Everything expires by
// itself, so that a store does not grow for ever: a session SessionTTL after
// its last change, events EventTTL after they were written, voices VoicesTTL, a
// token when its time is over.
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
	// TokenTTL is the longest life of a token. The store forgets it soon
	// after; what counts for Redeem is the expiry that it was issued with.
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
	// Create writes a new record with the status Created.
	Create(ctx context.Context, s Session) error
	// Get returns a record, or ErrNotFound.
	Get(ctx context.Context, id string) (Session, error)
	// Begin takes a session from Created to Running on a node. An expired one
	// is ErrConflict.
	Begin(ctx context.Context, id, node string, at time.Time) (Session, error)
	// Finish takes a session that is not over to Done or Failed.
	Finish(ctx context.Context, id string, outcome Status, at time.Time, cause string) error
	// Renew restarts the time to live of a session that is still running.
	Renew(ctx context.Context, id string) error
	// Orphans lists the sessions that other nodes left behind: running, or
	// created and expired at the time now. It is for a node that starts and
	// knows that it is alone.
	Orphans(ctx context.Context, node string, now time.Time) ([]Session, error)
}

// Tokens keeps the single-use tokens that open streams, as hashes only.
type Tokens interface {
	// Issue makes a token good for opening one session until expires, at most
	// TokenTTL from now.
	Issue(ctx context.Context, session, token string, expires time.Time) error
	// Redeem uses a token up. It succeeds once, also among callers that race;
	// everything else is ErrToken. A token for another session stays unused.
	Redeem(ctx context.Context, session, token string, now time.Time) error
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
