// Package faults makes the built-in server misbehave on purpose, so that
// clients of the service can be tested against failures. Faults act at the
// edges of the server only: Plan.Wrap in front of its routes,
// Plan.Stream between a stream and its socket. The server behind them works
// normally, and its record of a stream is true, whatever the client was sent.
package faults

import (
	"sync/atomic"
	"time"
)

// Fault is one fault, as parsed by Parse.
type Fault struct {
	spec  string
	kind  *kind
	value int           // a code or a count
	wait  time.Duration // a length of time
	after time.Duration // since the stream was opened
	times int64         // it affects the first so many requests or streams; 0 = all
	on    string        // the operation, for a fault of requests

	occasions *atomic.Int64 // requests or streams that it could have affected
}

// String is the text that the fault was parsed from.
func (f Fault) String() string { return f.spec }

// place is where a fault acts.
type place int

const (
	atRequest place = iota // on an operation's response
	atStream               // on an open stream
)

// value is the kind of value after the equals sign of a fault.
type value int

const (
	nothing value = iota
	length        // of time
	code          // of a close
	every         // Nth
)

// kind is what all faults of one name have in common.
type kind struct {
	name     string
	takes    value
	implicit string // the value if none is given; "" if one is required
	place    place
	what     string
}

// kinds are all faults except those that are named by an HTTP status.
var kinds = []*kind{
	{"slow", length, "", atRequest, "the response comes after TIME"},
	{"no-answer", nothing, "", atRequest, "the request gets no response; the connection stays open"},
	{"web-page", nothing, "", atRequest, "the response is 200 with a login page, like that of a captive portal"},

	{"close", code, "", atStream, "the stream is closed with CODE"},
	{"ahead", nothing, "", atStream, "error message that the audio is ahead of real time, then close 1008"},
	{"reset", nothing, "", atStream, "the connection is reset"},
	{"hang-up", nothing, "", atStream, "the connection ends without a close frame"},
	{"mute", nothing, "", atStream, "the server reads audio but sends nothing more, not even pongs"},
	{"no-pong", nothing, "", atStream, "pings get no pong"},
	{"no-close", nothing, "", atStream, "at the end of the stream the connection ends without a close frame"},
	{"never-close", nothing, "", atStream, "after end_of_stream the connection stays open, without a close frame"},
	{"slow-read", length, "", atStream, "each chunk is read TIME late; more than 100ms is slower than real time"},
	{"chunk-size", every, "10", atStream, "every 10th or Nth chunk is rejected as having a wrong size"},

	{"event-lag", length, "", atStream, "messages and the close after them are delayed by TIME"},
	{"drop-events", every, "2", atStream, "every 2nd or Nth event is missing"},
	{"duplicate-events", every, "1", atStream, "every event, or every Nth, is sent twice"},
	{"no-starts", nothing, "", atStream, "turns end that never started"},
	{"no-ends", nothing, "", atStream, "turns start and never end"},
	{"end-before-start", nothing, "", atStream, "turns end half a second before they start"},
	{"zero-length", nothing, "", atStream, "turns end when they start"},
	{"future-events", nothing, "", atStream, "timestamps are an hour ahead of the audio"},
	{"out-of-order", nothing, "", atStream, "each pair of events is swapped"},
	{"unknown-speaker", nothing, "", atStream, "after each start, a turn of SPEAKER_99 ends that never started"},
	{"unknown-type", nothing, "", atStream, "before each event, a message of an unknown type"},
	{"extra-fields", nothing, "", atStream, "events have fields that are not in the specification"},
	{"broken-json", nothing, "", atStream, "after each event, its first half again, which is not valid JSON"},
	{"binary-events", nothing, "", atStream, "events are sent in binary frames"},
	{"hostile-labels", nothing, "", atStream, "labels contain escape sequences and line breaks and are very long"},
}

// operations are what a fault of requests can affect, each with its routes in the server.
var operations = []struct {
	name   string
	routes []string
}{
	{"test", []string{"GET /v1/test"}},
	{"live", []string{"POST /v1/live"}},
	{"status", []string{"GET /v1/live/{id}"}},
	{"watch", []string{"GET /v1/live/{id}/events"}},
	{"media-list", []string{"GET /v1/media"}},
	{"media-delete", []string{"DELETE /v1/media"}},
	{"media-input", []string{"POST /v1/media/input"}},
	{"media-output", []string{"POST /v1/media/output"}},
	{"transfer", []string{"PUT /v1/media/objects/{sealed}", "GET /v1/media/objects/{sealed}"}},
	{"handshake", []string{"GET /v1/stream/{id}"}},
	{"job-create", []string{"POST /v1/diarize", "POST /v1/voiceprint", "POST /v1/identify"}},
	{"job-status", []string{"GET /v1/jobs/{id}"}},
	{"job-cancel", []string{"DELETE /v1/jobs/{id}"}},
	{"job-list", []string{"GET /v2/jobs"}},
}

// everyOperation stands for all of them.
const everyOperation = "all"

// Plan is the faults of one server. It is safe for concurrent use.
type Plan []Fault

// applies counts one more request or stream, and reports whether the fault
// affects it.
func (f Fault) applies() bool {
	return f.occasions.Add(1) <= f.times || f.times == 0
}

// next returns the faults that affect the next stream.
func (p Plan) next() (faults []*streamFault) {
	for _, f := range p {
		if f.kind.place == atStream && f.applies() {
			faults = append(faults, &streamFault{Fault: f, starts: map[string]float64{}})
		}
	}
	return faults
}
