package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hubbub/capture"
	"hubbub/localserver"
	"hubbub/localserver/apikeys"
	"hubbub/localserver/certificate"
	"hubbub/localserver/engine/enginetest"
	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/conform"
	"hubbub/protocol/testkit"
)

// runRules runs rules against a server.
func runRules(t *testing.T, options client.Options, o conform.Options) []conform.Result {
	t.Helper()
	options.APIKey = checkKey
	c := testkit.Must(client.New(options))(t)
	defer c.Close()
	o.Client, o.Key = c, checkKey
	if o.Slack == 0 {
		o.Slack = testkit.Timeout // the machine may be busy
	}
	if o.Speech == nil {
		o.Speech = make([]float32, 10*protocol.ChunkSamples)
	}
	return testkit.Must(conform.Run(context.Background(), o))(t)
}

// The built-in server holds every rule, and so does one with faults that are
// none of the contract's.
func TestBuiltInConforms(t *testing.T) {
	t.Parallel()
	speech := enginetest.Demo(t)[:conformSeconds*capture.SampleRate]
	dir := t.TempDir()
	server := serveHere(t, localserver.Options{DataDir: dir})
	key := func(account, plan string, before, life time.Duration) string { // made a while before
		return testkit.Must(apikeys.Create(dir, apikeys.Spec{Account: account, Plan: plan, Expires: life}, time.Now().Add(-before)))(t)
	}
	results := runRules(t, client.Options{BaseURL: server.URL(), CACert: server.CAPEM()}, conform.Options{
		Speech: speech, Many: true, OtherKey: key("other", "pro", 0, time.Hour), UnpaidKey: key("poor", "none", 0, time.Hour), ExpiredKey: key("old", "pro", 2*time.Hour, time.Hour),
	})
	for _, r := range results {
		skips := r.Slow || r.Name == "media/retention"
		if want := map[bool]conform.Verdict{true: conform.Skipped, false: conform.Holds}[skips]; r.Verdict != want || r.Seen == "" {
			t.Errorf("%s %s: %s", r.Verdict, r.Name, r.Seen)
		}
	}
}

// A service that reads slowly, as on a busy machine, is sent more audio, until it is too much.
func TestConformOfASlowService(t *testing.T) {
	t.Parallel()
	server := serveFaulty(t, "slow-read=60ms")
	for _, r := range runRules(t, client.Options{BaseURL: server.URL(), CACert: server.CAPEM()}, conform.Options{Only: []string{"stream/ahead"}}) {
		testkit.Equal(t, r.Verdict, conform.Holds, r.Name, r.Seen)
	}
}

// Each thing that the HTTP side of a service can do wrong is seen by its rule.
// That a rule holds where nothing is wrong is TestBuiltInConforms.
func TestConformSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	// The rules run at once here, which would exceed the rate limits.
	plain := certificate.Config{Mode: certificate.Off}
	unlimited := serveHere(t, localserver.Options{TLS: plain, RatePerMinute: -1}).URL()
	limited := serveHere(t, localserver.Options{TLS: plain}).URL()
	backend := func(rule string) string {
		if strings.HasPrefix(rule, "rate/") {
			return limited
		}
		return unlimited
	}
	wrong := wrongResponses(unlimited)
	for _, r := range conform.Rules() { // the rest have their tests beside them
		group, _, _ := strings.Cut(r.Name, "/")
		if _, ok := wrong[r.Name]; !ok && group != "stream" && group != "events" && !r.Slow && r.Name != "media/retention" {
			t.Errorf("nothing shows that %s can differ", r.Name)
		}
	}
	speech := enginetest.Demo(t)[3*capture.SampleRate : 10*capture.SampleRate] // of two people
	for name, w := range wrong {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule, _, _ := strings.Cut(name, " ")
			o := conform.Options{Only: []string{rule}, OtherKey: checkKey, UnpaidKey: checkKey, ExpiredKey: "expired-long-ago"}
			if rule == "status/done" {
				o.Slack = time.Millisecond // the rule waits for a status that never comes
			}
			if !strings.HasPrefix(rule, "status/") && !strings.HasPrefix(rule, "results/") { // those need none
				o.Speech = speech
			}
			results := runRules(t, client.Options{BaseURL: twisted(t, backend(rule), w)}, o)
			if len(results) != 1 || results[0].Verdict != conform.Differs {
				t.Errorf("%+v", results)
			}
		})
	}
	// What need not be offered, and is not; and a rule that needs what another one tests.
	for rule, w := range map[string]twist{
		"media/unchanged": {path: objectsPath, header: [2]string{"ETag", ""}},
		"jobs/succeeded":  {path: diarizePath, body: swap(`"status":"created"`, `"status":"queued"`)},
		"results/turns":   {path: streamPath, frames: func(s string) string { return strings.ReplaceAll(s, `"speaker"`, `"spoken!"`) }},
		"beside/metrics":  {path: "/metrics", to: 404}, "media/put": {path: inputPath, to: 404}, "errors/too-large": {path: livePath, from: 413, to: 200},
		"rate/headers": {request: func(r *http.Request) { r.URL.Path = "/healthz" }},
	} {
		t.Run("not offered "+rule, func(t *testing.T) {
			t.Parallel()
			results := runRules(t, client.Options{BaseURL: twisted(t, backend(rule), w)}, conform.Options{Only: []string{rule}, Speech: speech})
			want := conform.NotOffered
			if slices.Contains([]string{"media/unchanged", "jobs/succeeded", "results/turns"}, rule) {
				want = conform.Skipped
			}
			if len(results) != 1 || results[0].Verdict != want {
				t.Errorf("%+v", results)
			}
		})
	}
}

// Required rules hold where a service responds differently to what does not exist.
func TestConformAllowsOtherResponses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := serveHere(t, localserver.Options{TLS: certificate.Config{Mode: certificate.Off}, RatePerMinute: -1, DataDir: dir}).URL()
	other := testkit.Must(apikeys.Create(dir, apikeys.Spec{Account: "other", Plan: "pro", Expires: time.Hour}, time.Now()))(t)
	for name, w := range map[string]twist{
		"gone":       {path: outputPath, from: 404, to: 410},
		"an address": {path: outputPath, from: 404, to: 201, body: always(`{"url":"` + server + `/nothing"}`)},
		"invalid ID": {path: statusPath, from: 404, to: 400, body: always(`{"message":"m","errors":[{"field":"id","message":"m"}]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := runRules(t, client.Options{BaseURL: twisted(t, server, w)}, conform.Options{Only: []string{"media", "errors"}, RequiredOnly: true, OtherKey: other})
			for _, r := range results {
				if r.Verdict != conform.Holds && r.Name != "media/retention" {
					t.Errorf("%s %s: %s", r.Verdict, r.Name, r.Seen)
				}
			}
		})
	}
}

// Two processes: a server with a fault, and the contract tests that find it.
func TestConformProgram(t *testing.T) {
	t.Parallel()
	_, address := serve(t, "--tls", "off", "--api-key", checkKey, "--fault", "404,on=status")
	p := start(t, "conform", "--server", address, "--api-key", checkKey, "--only", "test", "--only", "status/created", "--only", "status/shape", "--output", "json")
	p.ends(exitFailed)
	var report conform.Report
	testkit.NoError(t, json.Unmarshal([]byte(p.output()), &report))
	if report.OK || report.Summary["differs"] != 2 || report.Summary["holds"] != 2 || report.Server != address {
		t.Errorf("%+v", report)
	}
	for _, r := range report.Rules {
		if r.Verdict == conform.Differs && (!strings.Contains(r.Seen, "returned 404") || r.Source == "" || r.Expected == "") {
			t.Errorf("%+v", r)
		}
	}
	if text := p.errors(); !strings.HasPrefix(text, "hubbub: 2 of 4 rules differ\n") || strings.Contains(p.output(), checkKey) {
		t.Errorf("%s%s", text, fmt.Sprint(report))
	}
}
