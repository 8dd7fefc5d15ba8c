// Package check tests the connection to a service, stage by stage: name lookup,
// TCP, TLS, API key, a stream with audio, its events, its close and its status.
// A stage that fails has a cause and says what to do; the stages after it are
// skipped. The report contains no API keys or tokens.
package check

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/hint"
	"hubbub/protocol/trace"
)

// Options configure a check.
type Options struct {
	Client *client.Client
	// Server is the name of the service in the report.
	Server string
	// Key is the API key of the client; "" = a key that needs no explanation.
	Key string
	// NoKey, unless nil, says that there is no API key. The stage of the key fails with it.
	NoKey error
	// Limit bounds one step.
	Limit time.Duration
	// Speech is the audio to send: clear speech, 16 kHz.
	Speech []float32
	// Version is the program's, for the report.
	Version string
	// Begin, unless nil, is called when a stage begins.
	Begin func(title string)
}

// State is the result of a stage.
type State string

// The states of a stage.
const (
	OK      State = "ok"
	Notice  State = "notice" // it works, and something should be known
	Failed  State = "failed"
	Skipped State = "skipped"
)

// Stage is one stage of a check. Its JSON form is a contract.
type Stage struct {
	Name    string         `json:"name"`
	Title   string         `json:"title"`
	State   State          `json:"state"`
	Millis  float64        `json:"ms"`
	Seen    string         `json:"seen"`
	Cause   string         `json:"cause"` // of a failure or a notice
	Next    string         `json:"next"`  // what to do about it
	Details map[string]any `json:"details,omitempty"`
}

func (s *Stage) notice(cause, next string) { s.State, s.Cause, s.Next = Notice, cause, next }

// checker runs the stages, in order. What a stage finds out is kept here for
// those after it.
type checker struct {
	Options
	secrets trace.Redactor
	probe   *client.Probe
	proxy   string        // "" = none
	skew    time.Duration // this machine's clock minus the service's
	live    protocol.LiveStream
	stream  *stream
}

// stages are the stages, in order.
var stages = []struct {
	name, title string
	run         func(*checker, context.Context, *Stage) error
}{
	{"dns", "name look-up", limited((*checker).lookUp)},
	{"tcp", "TCP", limited((*checker).connect)},
	{"tls", "TLS", limited((*checker).tls)},
	{"key", "key accepted", limited((*checker).key)},
	{"create", "stream created", limited((*checker).create)},
	{"websocket", "WebSocket opened", limited((*checker).open)},
	{"audio", "audio accepted", (*checker).audio},
	{"event", "first event", (*checker).firstEvent},
	{"lag", "lag", (*checker).lag},
	{"close", "clean close", (*checker).close},
	{"status", "status read", limited((*checker).status)},
}

// limited is a stage of one step, which Options.Limit bounds.
func limited(run func(*checker, context.Context, *Stage) error) func(*checker, context.Context, *Stage) error {
	return func(c *checker, ctx context.Context, s *Stage) error {
		ctx, cancel := context.WithTimeout(ctx, c.Limit)
		defer cancel()
		return run(c, ctx, s)
	}
}

// Run runs the stages up to the first that fails, or to the end of ctx.
func Run(ctx context.Context, o Options) Report {
	c := &checker{Options: o}
	started := time.Now()
	c.secrets.Add(o.Key)
	results := c.run(ctx)
	if c.probe != nil {
		c.probe.Close()
	}
	if c.stream != nil {
		c.stream.close()
	}
	return c.report(started, results)
}

func (c *checker) run(ctx context.Context) []Stage {
	results := make([]Stage, len(stages))
	for i, s := range stages {
		results[i] = Stage{Name: s.name, Title: s.title, State: Skipped}
	}
	for i := range stages {
		s := &results[i]
		if c.Begin != nil {
			c.Begin(s.Title)
		}
		begun := time.Now()
		s.State = OK
		err := stages[i].run(c, ctx, s)
		s.Millis = cmp.Or(s.Millis, millis(time.Since(begun)))
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			s.State, s.Seen = Skipped, "interrupted"
			return results
		}
		s.State, s.Cause, s.Next = Failed, err.Error(),
			cmp.Or(hint.Of(err), "Try again; if it fails again, give --report FILE to the operator of the service.")
		if response, ok := errors.AsType[*client.ResponseError](err); ok {
			if s.Details == nil {
				s.Details = map[string]any{}
			}
			s.Details["status"] = response.Status
		}
		if i+1 < len(results) {
			results[i+1].Seen = "not tried: " + s.Title + " failed"
		}
		return results
	}
	return results
}

func millis(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 10 }
