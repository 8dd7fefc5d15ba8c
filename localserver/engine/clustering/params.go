package clustering

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Default returns the Params that the embedded weights were tuned with.
func Default() Params {
	return Params{
		Match: 0.40, MatchSpeech: 1, MatchSlope: 0.06, MatchMost: 4,
		Found: 1.6, FoundFirst: 0.5,
		Slack:      0.2,
		Continuity: 0.1,
		Learn:      0.5, LearnMargin: 0,
		Memory:      60,
		PieceMargin: 0.15, PieceSpeech: 0.1,
		SpeechOn: 0.5, SecondOn: 0.5,
		Edge: 0.5,
	}
}

// Set changes one parameter by its name, in any case, for tuning.
func (p *Params) Set(name string, value float64) error {
	v := reflect.ValueOf(p).Elem()
	field := v.FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, name) })
	if !field.IsValid() {
		return fmt.Errorf("no parameter %q; there are %s", name, strings.Join(Names(), ", "))
	}
	field.SetFloat(value)
	return nil
}

// Get returns one parameter by its name, in any case.
func (p *Params) Get(name string) (float64, bool) {
	field := reflect.ValueOf(p).Elem().FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, name) })
	if !field.IsValid() {
		return 0, false
	}
	return field.Float(), true
}

// Names lists the parameters.
func Names() []string {
	t := reflect.TypeFor[Params]()
	var names []string
	for i := range t.NumField() {
		names = append(names, t.Field(i).Name)
	}
	slices.Sort(names)
	return names
}
