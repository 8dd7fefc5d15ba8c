package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"strings"
	"time"

	"hubbub/protocol"
)

// The states of a stage.
const (
	stateOK      = "ok"
	stateNotice  = "notice" // it works, and something about it is worth knowing
	stateFailed  = "failed"
	stateSkipped = "skipped"
)

// checkStage is one row of the check. Its fields are what --output json prints.
type checkStage struct {
	Name    string         `json:"name"`
	Title   string         `json:"title"`
	State   string         `json:"state"`
	Millis  float64        `json:"ms"`
	Seen    string         `json:"seen"`
	Cause   string         `json:"cause"` // of a failure or a notice
	Next    string         `json:"next"`  // what to do about it
	Details map[string]any `json:"details,omitempty"`
}

// checkReport is the whole check.
type checkReport struct {
	OK      bool         `json:"ok"`
	Server  string       `json:"server"`
	Proxy   string       `json:"proxy"`
	Version string       `json:"version"`
	Started string       `json:"started"`
	Stages  []checkStage `json:"stages"`
}

func (r checkReport) print(w io.Writer, format string) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	}
	return r.table(w, sheetOf(w))
}

// ticket is the report for somebody else: the table, the machine it was made
// on, and all numbers.
func (r checkReport) ticket(w io.Writer) error {
	fmt.Fprintf(w, "hubbub check, %s\nhubbub %s, %s, %s/%s\n\n", r.Started, version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err := r.table(w, sheet{}); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nThe same for machines:")
	return r.print(w, "json")
}

// secrets are what no output may hold: the API key, and tokens of streams.
type secrets struct{ words []string }

// add takes a secret; one that is too short would be found by chance.
func (s *secrets) add(word string) {
	if len(word) >= 4 {
		s.words = append(s.words, word)
	}
}

// addURL takes every value of an address's query.
func (s *secrets) addURL(address string) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	for _, values := range u.Query() {
		for _, v := range values {
			s.add(v)
			s.add(url.QueryEscape(v))
		}
	}
}

func (s *secrets) hide(text string) string {
	for _, word := range s.words {
		text = strings.ReplaceAll(text, word, "[secret]")
	}
	return text
}

// hideLong leaves words alone that are too short for a key that is in earnest.
func (s *secrets) hideLong(text string) string {
	const least = 12
	long := secrets{}
	for _, word := range s.words {
		if len(word) >= least {
			long.words = append(long.words, word)
		}
	}
	return long.hide(text)
}

// report is what the stages came to, without secrets and fit for a terminal.
func (c *checker) report(started time.Time) checkReport {
	r := checkReport{OK: true, Server: c.server.name, Proxy: c.proxy, Version: version, Started: started.UTC().Format(time.RFC3339)}
	for _, s := range c.stages {
		clean := func(text string) string { return protocol.Clean(c.secrets.hide(text), 600) }
		s.Seen, s.Cause = clean(s.Seen), clean(s.Cause)
		// What to do is said in our own words, and a key may be one of them.
		s.Next = protocol.Clean(c.secrets.hideLong(s.Next), 600)
		for k, v := range s.Details {
			if text, ok := v.(string); ok {
				s.Details[k] = clean(text)
			}
		}
		r.OK = r.OK && s.State != stateFailed && s.State != stateSkipped
		r.Stages = append(r.Stages, s)
	}
	return r
}
