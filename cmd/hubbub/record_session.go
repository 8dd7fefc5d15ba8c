package main

import (
	"encoding/json"
	"net/url"
	"time"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/tui"
)

// describe writes session.json: at the beginning what is known then, at the
// end all of it.
func (r *recording) describe() error {
	raw, err := json.MarshalIndent(r.info, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(r.path(sessionFile), append(raw, '\n'))
}

// about is what session.json says of a session that begins now.
func about(source capture.Info, server string, latency time.Duration, pace capture.Pace) sessionInfo {
	return sessionInfo{
		Version: sessionVersion,
		Program: "hubbub " + version,
		Started: time.Now().UTC().Truncate(time.Millisecond),
		Source:  source.Name,
		Name:    source.Base,
		Server:  withoutCredentials(server),
		Latency: latency.Seconds(),
		Pace:    pace.String(),
	}
}

// withoutCredentials leaves of an address what may be written down: people put
// keys into addresses.
func withoutCredentials(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return server
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// arrived notes when an event came, one line for each line of events.ndjson,
// and after it: a crash in between costs no event.
func (r *recording) arrived(heard float64, e protocol.Event) error {
	line, err := json.Marshal(arrival{Heard: protocol.Round1ms(heard), At: protocol.Round1ms(e.Timestamp)})
	if err != nil {
		return err
	}
	_, err = r.arrivals.Write(append(line, '\n'))
	return err
}

// ended completes session.json.
func (r *recording) ended(gaps []tui.Span) error {
	if r == nil {
		return nil
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	r.info.Ended = &now
	for _, g := range gaps {
		r.info.Gaps = append(r.info.Gaps, gap(g))
	}
	return recordError(r.describe())
}
