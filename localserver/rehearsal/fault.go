// Package rehearsal makes the built-in server misbehave on purpose, so that
// clients of the service can be tried against what goes wrong in the field. It
// stands at the server's edges alone: Plan.Wrap in front of the HTTP
// operations, Plan.Stream between a stream and its socket. Behind them the
// server goes on as it should: its record of a stream is true, whatever the
// client was told.
package rehearsal

import (
	"slices"
	"sync/atomic"
	"time"
)

// Fault is one way to misbehave, as Parse has read it.
type Fault struct {
	spec  string
	kind  *kind
	value int           // a code or a count
	wait  time.Duration // a length of time
	after time.Duration // since the stream was opened
	times int64         // the first so many requests or streams; 0 = all
	on    string        // the operation, of faults of requests
}

// String is the fault as it was asked for.
func (f Fault) String() string { return f.spec }

// place is the edge at which a fault acts.
type place int

const (
	atRequest place = iota // instead of an operation's answer
	atSocket               // on an open stream
	atEvents               // between the stream and its messages
)

// value is what may stand behind the equals sign of a fault.
type value int

const (
	nothing value = iota
	length        // of time
	code          // of a close
	status        // of HTTP
	every         // the how-manieth
)

// kind is what all faults of one name have in common.
type kind struct {
	name  string
	takes value
	usual string // the value where none is given; "" where one must be
	place place
	on    string // the one operation of a fault of requests; "" = any
	what  string
}

// kinds are all faults but those that are named by an HTTP status.
var kinds = []*kind{
	{"slow", length, "", atRequest, "", "the answer comes after TIME"},
	{"no-answer", nothing, "", atRequest, "", "there is no answer, and the connection stays open"},
	{"web-page", nothing, "", atRequest, "", "200 and a log-in page, as of a captive portal"},
	{"slow-handshake", length, "", atRequest, opHandshake, "the WebSocket opens after TIME"},
	{"no-handshake", nothing, "", atRequest, opHandshake, "the handshake is never answered"},
	{"refuse-handshake", status, "403", atRequest, opHandshake, "the handshake is refused, with 403 or STATUS"},

	{"close", code, "", atSocket, "", "the stream is closed with CODE"},
	{"ahead", nothing, "", atSocket, "", "the client is called too fast: error message, close 1008"},
	{"reset", nothing, "", atSocket, "", "the connection is reset"},
	{"hang-up", nothing, "", atSocket, "", "the connection ends without a close frame"},
	{"mute", nothing, "", atSocket, "", "audio is taken and nothing more is said, not even a pong"},
	{"no-pong", nothing, "", atSocket, "", "pings are not answered"},
	{"no-close", nothing, "", atSocket, "", "at the stream's end the connection ends without a close frame"},
	{"never-close", nothing, "", atSocket, "", "after end_of_stream the connection stays open, without a close frame"},
	{"slow-read", length, "", atSocket, "", "each chunk is taken TIME late: more than 100ms is slower than real time"},
	{"chunk-size", every, "10", atSocket, "", "every 10th or Nth chunk is called of a wrong size, and dropped"},

	{"event-lag", length, "", atEvents, "", "messages come TIME late, and the close behind them"},
	{"drop-events", every, "2", atEvents, "", "every 2nd or Nth event is missing"},
	{"duplicate-events", every, "1", atEvents, "", "every event, or every Nth, comes twice"},
	{"no-starts", nothing, "", atEvents, "", "turns end that never started"},
	{"no-ends", nothing, "", atEvents, "", "turns start and never end"},
	{"end-before-start", nothing, "", atEvents, "", "turns end half a second before they start"},
	{"zero-length", nothing, "", atEvents, "", "turns end when they start"},
	{"future-events", nothing, "", atEvents, "", "timestamps are an hour later than the audio"},
	{"out-of-order", nothing, "", atEvents, "", "each two events change places"},
	{"unknown-speaker", nothing, "", atEvents, "", "after each start a turn of SPEAKER_99 ends that never began"},
	{"unknown-type", nothing, "", atEvents, "", "before each event comes a message of a type that nobody knows"},
	{"extra-fields", nothing, "", atEvents, "", "events have fields that the specification does not know"},
	{"broken-json", nothing, "", atEvents, "", "after each event comes half of it again, which is no JSON"},
	{"binary-events", nothing, "", atEvents, "", "events come in binary frames"},
	{"hostile-labels", nothing, "", atEvents, "", "labels hold escape sequences and line breaks, and are very long"},
}

// The operations that a fault of requests can be about.
const (
	opTest        = "test"
	opLive        = "live"
	opStatus      = "status"
	opWatch       = "watch"
	opMediaInput  = "media-input"
	opMediaOutput = "media-output"
	opTransfer    = "transfer"
	opHandshake   = "handshake"
	opAll         = "all"
)

var operations = []string{opTest, opLive, opStatus, opWatch, opMediaInput, opMediaOutput, opTransfer, opHandshake, opAll}

// Plan is the faults of one server. A nil Plan has none. It is safe for
// concurrent use.
type Plan struct {
	faults []*planned
}

// planned is a fault and how often it has struck.
type planned struct {
	Fault
	struck atomic.Int64
}

// NewPlan is nil without faults.
func NewPlan(faults []Fault) *Plan {
	if len(faults) == 0 {
		return nil
	}
	p := &Plan{}
	for _, f := range faults {
		p.faults = append(p.faults, &planned{Fault: f})
	}
	return p
}

// strikes counts one more occasion, and tells whether it is still one of the
// fault's.
func (f *planned) strikes() bool {
	return f.struck.Add(1) <= f.times || f.times == 0
}

// of are the faults at some places that strike now.
func (p *Plan) of(places ...place) []Fault {
	var out []Fault
	for _, f := range p.faults {
		if slices.Contains(places, f.kind.place) && f.strikes() {
			out = append(out, f.Fault)
		}
	}
	return out
}
