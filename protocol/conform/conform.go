// Package conform tests a service against the interface that docs/service.md
// describes, rule by rule, for those who build such a service themselves: what
// was expected, what was observed, and the section that says so.
//
// A Rule has a name, a sentence, a section, and a function that tests the
// service through a prober, which keeps what several rules share: a conversation
// is sent once, and a dozen rules examine its events. The first thing that is not
// as expected ends the function by a panic, which try recovers, as in tests of Go.
// What is sent is bounded: some three hundred small requests, a few jobs and about
// twenty short streams, never more than four at once.
package conform

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/client"
)

// document describes the interface.
const document = "docs/service.md"

// Verdict is the result of a rule.
type Verdict string

// The verdicts.
const (
	Holds      Verdict = "holds"
	Differs    Verdict = "differs"
	NotOffered Verdict = "not offered" // an optional feature is missing
	Skipped    Verdict = "skipped"     // it could not be tested
)

// Rule is one statement of the document.
type Rule struct {
	// Name is GROUP/NAME.
	Name string
	// Expected is the rule in a sentence.
	Expected string
	// Section is the section of the document that has the rule.
	Section string
	// Chosen rules are those in which another service may differ, as the section
	// "Compatible services" says.
	Chosen bool
	// Slow rules take a minute or more.
	Slow bool
	// Many rules send more than a hundred requests.
	Many bool

	// step is the step that takes long and that check uses; nil = none. It begins before the rules.
	step  interface{ begin(*prober) }
	check func(p *prober) (seen string)
}

// Source is the document and the section that has the rule.
func (r Rule) Source() string { return document + ", " + r.Section }

// Rules are all rules, in the order in which they are tested.
func Rules() []Rule {
	return slices.Concat(testRules, keyRules, liveRules, tokenRules, streamRules, eventRules, watchRules, resumeRules, mediaRules, resultRules, jobRules, errorRules, monitoringRules, rateRules)
}

// Options configure a run.
type Options struct {
	// Client reaches the service with the API key Key.
	Client *client.Client
	Key    string
	// OtherKey is a key of another account, UnpaidKey one of an account without
	// a subscription, ExpiredKey one that has expired. Rules that need a missing
	// one are skipped.
	OtherKey, UnpaidKey, ExpiredKey string
	// Speech is a conversation, 16 kHz mono, in whole chunks. It should have speech
	// in its first seconds and end inside a turn.
	Speech []float32
	// Slow includes the slow rules, Many those that send many requests.
	Slow, Many bool
	// Slack is added to the times of the document, for a slow connection or
	// machine.
	Slack time.Duration
	// Only names the rules or groups to test, including slow rules; none = all.
	Only []string
	// RequiredOnly omits the chosen rules.
	RequiredOnly bool
	// Begin, unless nil, is called when a rule begins.
	Begin func(done, of int, name string)
	// Waiting, unless nil, is called when the service asks to wait after too many
	// requests, also from several goroutines at once.
	Waiting func(time.Duration)
}

// Result is a rule and its verdict.
type Result struct {
	Rule
	Verdict Verdict
	// Seen is what was observed, or why the rule was skipped.
	Seen string
	Took time.Duration
}

// Select returns the rules that the options select. An unknown name is an error.
func Select(o Options) ([]Rule, error) {
	all := Rules()
	for _, name := range o.Only {
		if !slices.ContainsFunc(all, func(r Rule) bool { return r.matches(name) }) {
			return nil, fmt.Errorf("there is no rule or group of rules %q", protocol.Clean(name, 60))
		}
	}
	return slices.DeleteFunc(all, func(r Rule) bool {
		return o.RequiredOnly && r.Chosen ||
			len(o.Only) > 0 && !slices.ContainsFunc(o.Only, r.matches)
	}), nil
}

// matches reports whether name is that of the rule or of its group.
func (r Rule) matches(name string) bool {
	group, _, _ := strings.Cut(r.Name, "/")
	return r.Name == name || group == strings.TrimSuffix(name, "/")
}

// named reports whether a rule was named, not only its group.
func (o Options) named(r Rule) bool { return slices.Contains(o.Only, r.Name) }

// Run tests the rules and returns a result for each. It returns an error when no
// rule could be tested: the service cannot be reached, or rejects the key. After
// the end of ctx, the remaining rules are skipped.
func Run(ctx context.Context, o Options) ([]Result, error) {
	rules, err := Select(o)
	if err != nil {
		return nil, err
	}
	if o.Begin == nil {
		o.Begin = func(int, int, string) {}
	}
	if o.Waiting == nil {
		o.Waiting = func(time.Duration) {}
	}
	ctx, stop := context.WithCancel(ctx)
	p := newProber(ctx, o)
	defer p.background.Wait()
	defer stop()
	if err := p.reachable(); err != nil {
		return nil, err
	}
	for _, r := range rules {
		if r.step != nil && p.runs(r) {
			r.step.begin(p)
		}
	}
	var results []Result
	for i, r := range rules {
		o.Begin(i, len(rules), r.Name)
		results = append(results, p.apply(r))
	}
	return results, nil
}

// apply tests one rule.
func (p *prober) apply(r Rule) Result {
	began := time.Now()
	res := Result{Rule: r, Verdict: Skipped}
	switch {
	case p.ctx.Err() != nil:
		res.Seen = "interrupted"
		return res
	case r.Slow && !p.runs(r):
		res.Seen = "it takes a minute or more: --slow includes it"
		return res
	case r.Many && !p.runs(r):
		res.Seen = "it sends more than a hundred requests: --rate includes it"
		return res
	}
	res.Verdict = Holds
	ended := try(func() { res.Seen = r.check(p) })
	res.Took = time.Since(began)
	switch {
	case ended == nil:
	case p.ctx.Err() != nil:
		res.Verdict, res.Seen = Skipped, "interrupted"
	default:
		res.Verdict, res.Seen = ended.verdict, ended.seen
	}
	res.Seen = protocol.Clean(p.secrets.Text(res.Seen), 700)
	return res
}

// runs reports whether a rule that is slow or sends much is included.
func (p *prober) runs(r Rule) bool {
	return (!r.Slow || p.Slow || p.named(r)) && (!r.Many || p.Many || p.named(r))
}

// failure is the panic that ends a rule, or a step that rules need.
type failure struct {
	verdict Verdict
	seen    string
}

func (f *failure) String() string { return f.seen }

// try does a rule or a step, and returns what ended it.
func try(do func()) (ended *failure) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *failure:
			ended = p
		default:
			panic(p)
		}
	}()
	do()
	return nil
}

// require ends the rule if there is an error: the network, or a response that is not HTTP.
func require(err error) {
	if err != nil {
		differs("%v", err)
	}
}

// needs does a step that a rule tests, for another rule, which is skipped if the step fails.
func needs[T any](p *prober, step func(*prober) T, rule string) (out T) {
	ended := try(func() { out = step(p) })
	switch {
	case ended == nil:
		return out
	case ended.verdict == Differs:
		skipped("it needs what %s tests: %v", rule, ended)
	}
	panic(ended)
}

// differs, notOffered and skipped end the rule with a verdict.
func differs(format string, args ...any) {
	panic(&failure{Differs, fmt.Sprintf(format, args...)})
}

func notOffered(format string, args ...any) {
	panic(&failure{NotOffered, fmt.Sprintf(format, args...)})
}

func skipped(format string, args ...any) {
	panic(&failure{Skipped, fmt.Sprintf(format, args...)})
}
