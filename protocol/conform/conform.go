// Package conform plays the contract of the diarization service against one,
// rule by rule, for those who build such a service themselves: what was
// expected, what was seen instead, and where it is written.
//
// A Rule is a name, a sentence, its source, and a function that asks the
// service. The functions speak to it through a play, which holds what several
// rules look at together: a conversation is sent once, and its events are
// judged by a dozen rules. What is sent is bounded: some two hundred small
// requests and about twenty short streams, never more than four at once.
package conform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hubbub/protocol"
)

// The two documents that rules come from. What only the second one has is a
// decision where the first leaves it open: another service may differ there.
const (
	specification = "service-interface.md"
	contract      = "contract.md"
)

// Verdict is what became of a rule.
type Verdict string

// The verdicts.
const (
	Holds      Verdict = "holds"
	Differs    Verdict = "differs"
	NotOffered Verdict = "not offered" // and it need not be
	Skipped    Verdict = "skipped"     // it could not be tried
)

// Rule is one thing that the contract says.
type Rule struct {
	// Name is GROUP/NAME.
	Name string
	// Expected is the rule in a sentence.
	Expected string
	// Source is the document and where in it.
	Source string
	// Slow rules take a minute or more.
	Slow bool
	// Many rules send more requests than anybody should who was not asked to.
	Many bool

	check func(ctx context.Context, p *play) (seen string, err error)
}

// ContractOnly tells a rule that the specification leaves open.
func (r Rule) ContractOnly() bool { return strings.HasPrefix(r.Source, contract) }

// Rules are all of them, in the order in which they are played.
func Rules() []Rule {
	return slices.Concat(testRules, keyRules, liveRules, tokenRules, streamRules, eventRules, mediaRules, resultRules, errorRules, besideRules, rateRules)
}

// Options are what a play needs.
type Options struct {
	// Client reaches the service, and Key opens it.
	Client *protocol.Client
	Key    string
	// OtherKey is of another account, UnpaidKey of one without a subscription,
	// ExpiredKey was good once. Without one, its rules are skipped.
	OtherKey, UnpaidKey, ExpiredKey string
	// Speech is a conversation, 16 kHz mono, in whole chunks. It should begin
	// with somebody speaking within the first seconds, and end inside a turn.
	Speech []float32
	// Slow plays the slow rules, Many those that send many requests.
	Slow, Many bool
	// Slack is added to the times that the contract gives, where the way to the
	// service or the machine that plays is slow.
	Slack time.Duration
	// Only names rules or groups to play, the slow ones too; none means all.
	Only []string
	// SpecOnly leaves out what the specification leaves open.
	SpecOnly bool
	// Begun is told of each rule when its turn comes; nil for nobody.
	Begun func(done, of int, name string)
}

// Result is what a play came to.
type Result struct {
	Rule
	Verdict Verdict
	// Seen is what the service did; of a rule that was skipped, why it was.
	Seen string
	Took time.Duration
}

// Select are the rules that the options ask for. An unknown name is an error.
func Select(o Options) ([]Rule, error) {
	all := Rules()
	for _, name := range o.Only {
		if !slices.ContainsFunc(all, func(r Rule) bool { return r.answersTo(name) }) {
			return nil, fmt.Errorf("there is no rule or group of rules %q", protocol.Clean(name, 60))
		}
	}
	return slices.DeleteFunc(all, func(r Rule) bool {
		return o.SpecOnly && r.ContractOnly() ||
			len(o.Only) > 0 && !slices.ContainsFunc(o.Only, r.answersTo)
	}), nil
}

// answersTo tells whether a name means this rule, or the group it is in.
func (r Rule) answersTo(name string) bool {
	group, _, _ := strings.Cut(r.Name, "/")
	return r.Name == name || group == strings.TrimSuffix(name, "/")
}

// asked tells whether a rule was named, not only its group.
func (o Options) asked(r Rule) bool { return slices.Contains(o.Only, r.Name) }

// Run plays the rules and returns a result for each. An error means that there
// was nothing to play with: the service cannot be reached, or does not take
// the key. The end of ctx skips what is left.
func Run(ctx context.Context, o Options) ([]Result, error) {
	rules, err := Select(o)
	if err != nil {
		return nil, err
	}
	if o.Begun == nil {
		o.Begun = func(int, int, string) {}
	}
	p := newPlay(o)
	if err := p.knock(ctx); err != nil {
		return nil, err
	}
	play, stop := context.WithCancel(ctx)
	defer p.acts.Wait()
	defer stop()
	p.begin(play, rules)
	var results []Result
	for i, r := range rules {
		o.Begun(i, len(rules), r.Name)
		results = append(results, p.judge(ctx, r))
	}
	return results, nil
}

// judge plays one rule.
func (p *play) judge(ctx context.Context, r Rule) Result {
	began := time.Now()
	res := Result{Rule: r, Verdict: Skipped}
	switch {
	case ctx.Err() != nil:
		res.Seen = "interrupted"
		return res
	case r.Slow && !p.plays(r):
		res.Seen = "it takes a minute or more: --slow plays it"
		return res
	case r.Many && !p.plays(r):
		res.Seen = "it sends more than a hundred requests: --rate plays it"
		return res
	}
	seen, err := r.check(ctx, p)
	res.Took = time.Since(began)
	res.Verdict, res.Seen = Holds, seen
	var v *verdict
	switch {
	case err == nil:
	case ctx.Err() != nil:
		res.Verdict, res.Seen = Skipped, "interrupted"
	case errors.As(err, &v):
		res.Verdict, res.Seen = v.verdict, v.seen
	default: // the network, or an answer that is not HTTP
		res.Verdict, res.Seen = Differs, err.Error()
	}
	res.Seen = protocol.Clean(p.secrets.Hide(res.Seen), 700)
	return res
}

// plays tells whether a slow or large rule is to be played.
func (p *play) plays(r Rule) bool {
	return (!r.Slow || p.Slow || p.asked(r)) && (!r.Many || p.Many || p.asked(r))
}

// verdict is the error of a rule that does not hold.
type verdict struct {
	verdict Verdict
	seen    string
}

func (v *verdict) Error() string { return v.seen }

func differs(format string, args ...any) error {
	return &verdict{Differs, fmt.Sprintf(format, args...)}
}

func notOffered(format string, args ...any) error {
	return &verdict{NotOffered, fmt.Sprintf(format, args...)}
}

func skipped(format string, args ...any) error {
	return &verdict{Skipped, fmt.Sprintf(format, args...)}
}
