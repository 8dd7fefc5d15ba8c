// Package store keeps what must outlive a request: sessions with the tokens
// that open them, the events of each stream, snapshots of speakers, media,
// counters and keys.
//
// It is built on NATS JetStream, in one of three forms: embedded in the process
// and in memory, embedded and on disk with every write synced, or on a cluster
// of NATS servers with three replicas, shared by several nodes. The embedded
// server listens on no port.
//
// A call that returned nil has been written; on disk it survives a kill at any
// moment. Everything expires, so that a store does not grow without bound: a
// session SessionTTL after its last change, events EventTTL after they were
// written, snapshots SnapshotTTL.
//
// A call without an answer is made again until its context ends, and finds out
// whether an earlier attempt was carried out. If that remains open, Unknown
// reports so.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// The times to live. Results of a stream are promised for 24 hours and removed
// within 48; the record of the stream stays as long as its results can.
const (
	SessionTTL = 48 * time.Hour
	EventTTL   = 47 * time.Hour // so that a stream of 20 hours is complete for a day after its end
	// TokenTTL is how long a token opens its session.
	TokenTTL = 10 * time.Minute
)

var (
	// ErrNotFound is a session or object that does not exist or has expired.
	ErrNotFound = errors.New("no such session")
	// ErrConflict is a step that the session's status does not allow: it was
	// begun or finished before.
	ErrConflict = errors.New("the session has moved on")
	// ErrToken is a token that opens nothing: wrong, used, expired or of
	// another session. It does not say which.
	ErrToken = errors.New("the token is not valid")
)

// Status is the state of a session: created, running, then done or error.
type Status string

// The statuses.
const (
	Created Status = "created"
	Running Status = "running"
	Done    Status = "done"
	Failed  Status = "error"
)

// Over reports whether the session has ended.
func (s Status) Over() bool { return s == Done || s == Failed }

// Session is the record of one stream.
type Session struct {
	ID      string `json:"id"`
	Account string `json:"account"`
	// Key is the ID of the API key that created it, "" for a key without one.
	Key string `json:"key,omitempty"`
	// Node is the server that created the session, then the one that runs it.
	Node   string `json:"node"`
	Status Status `json:"status"`
	// Input is the JSON object that the session was created with.
	Input   json.RawMessage `json:"input"`
	Created time.Time       `json:"created"`
	// Token is the hash of the token that opens the session, and Attempt the
	// attempt that has used it.
	Token   string `json:"token"`
	Attempt string `json:"attempt,omitempty"`
	// Expires is when the session can no longer be begun.
	Expires   time.Time  `json:"expires"`
	Started   *time.Time `json:"started,omitempty"`
	Completed *time.Time `json:"completed,omitempty"`
	// Cause is why a session ended, for the operator.
	Cause string `json:"cause,omitempty"`
	// Resume is the earlier session of the account whose speakers this one
	// continues with.
	Resume string `json:"resume,omitempty"`
	// ResumedBy is the newest session that has continued with the speakers of this
	// one, "" for none.
	ResumedBy string `json:"resumedBy,omitempty"`
	// Enrolment is the people whom the session recognises, opaque to the store.
	// It is personal data, and deleted when the session ends.
	Enrolment json.RawMessage `json:"enrolment,omitempty"`
}

// Sessions stores the records of streams. Every change of status is one
// compare-and-set: of two concurrent callers, one gets ErrConflict.
type Sessions interface {
	// Create writes a new record with the status Created, and the hash of the
	// token that opens it.
	Create(ctx context.Context, s Session, token string) error
	// Get returns a record, or ErrNotFound.
	Get(ctx context.Context, id string) (Session, error)
	// Begin takes a session from Created to Running and uses up its token, in
	// one step. It succeeds once, also among concurrent callers; a token that
	// is wrong, used or expired is ErrToken. An attempt whose outcome is
	// unknown may be made again.
	Begin(ctx context.Context, id, token string, by Claim, at time.Time) (Session, error)
	// Withdraw undoes an attempt to begin a session whose outcome is unknown,
	// and prevents it if it is still in flight: the token is valid again. Only
	// the node that made the attempt may call it, and only if it runs no stream
	// for it.
	Withdraw(ctx context.Context, id, attempt string) error
	// Finish takes a session that is not over to Done or Failed.
	Finish(ctx context.Context, id string, outcome Status, at time.Time, cause string) error
	// Resumed notes that another session continues with the speakers of this one.
	Resumed(ctx context.Context, id, by string) error
	// Renew restarts the time to live of a running session.
	Renew(ctx context.Context, id string) error
	// Orphans returns the sessions that other nodes have left: running, or
	// created and expired by now. It is for a node that starts and knows that it
	// is the only one.
	Orphans(ctx context.Context, node string, now time.Time) ([]Session, error)
}

// Claim is one attempt to begin a session.
type Claim struct {
	Node    string // that runs the stream
	Attempt string // unique for each attempt
}

// Journal stores the events of streams, in order.
type Journal interface {
	// Append adds messages, each one JSON text without a line break, to the
	// events of a session: all of them or none. first is the number of the
	// first one, counted from 0 in its session; a batch whose outcome is unknown
	// may be appended again. ErrConflict says that another node has amended the
	// events: nothing can follow.
	Append(ctx context.Context, session string, first int, messages [][]byte) error
	// Messages returns everything that was appended.
	Messages(ctx context.Context, session string) ([][]byte, error)
}
