package plain

import (
	"slices"
	"strconv"
	"strings"

	"hubbub/protocol"
	"hubbub/tui/display"
)

// The commands that change what speakers are: names, merges, mutes, and voices to remember.

// find is the speaker that a number, a label or a name at the start of args
// means, and the rest of args. Names may have several words.
func find(s *display.Session, args string) (p display.Speaker, rest string, found bool) {
	word, rest, _ := strings.Cut(args, " ")
	if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(s.Speakers) {
		return s.Speakers[n-1], strings.TrimSpace(rest), true
	}
	longest := 0
	for _, q := range s.Speakers {
		for _, name := range []string{q.Name, q.Label} {
			n := len(name)
			if n > longest && len(args) >= n && strings.EqualFold(args[:n], name) && (len(args) == n || args[n] == ' ') {
				p, rest, longest, found = q, strings.TrimSpace(args[n:]), n, true
			}
		}
	}
	return p, rest, found
}

func (a *Accessible) notFound(args string) error {
	if args == "" {
		return a.printf("Who? Type a number, a label or a name; who lists them.")
	}
	return a.printf("No speaker is called %s; who lists all.", args)
}

// change changes the annotations and answers so, or why that is refused.
func (a *Accessible) change(f func(protocol.Annotations) (protocol.Annotations, error), format string, args ...any) error {
	if err := a.o.Annotations.Update(f); err != nil {
		return a.refused(err)
	}
	return a.printf(format, args...)
}

func (a *Accessible) refused(err error) error { return a.printf("Nothing changed: %s.", err) }

func (a *Accessible) name(args string) error {
	p, name, found := find(a.session(), args)
	switch {
	case !found:
		return a.notFound(args)
	case name == "":
		return a.printf("Which name? Type name %s and the name.", p.Name)
	}
	if err := a.o.Annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename(p.Label, name) }); err != nil {
		return a.refused(err)
	}
	_ = a.printf("%s is now %s.", p.Name, a.session().Name(p.Label))
	return a.offerToRemember(p)
}

func (a *Accessible) merge(args string) error {
	s := a.session()
	from, rest, found := find(s, args)
	if !found {
		return a.notFound(args)
	}
	rest = strings.TrimSpace(strings.TrimPrefix(rest, "into "))
	into, more, found := find(s, rest)
	if !found || more != "" {
		return a.notFound(rest)
	}
	if from.Label == into.Label {
		return a.printf("%s cannot be merged with itself.", from.Name)
	}
	return a.change(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Merge(from.Label, into.Label) },
		"Merged %s into %s. Undo reverts it.", from.Name, into.Name)
}

func (a *Accessible) move(args string) error {
	s := a.session()
	from, rest, found := find(s, args)
	if !found {
		return a.notFound(args)
	}
	clock, rest, _ := strings.Cut(rest, " ")
	at, ok := display.ParseClock(clock)
	if !ok {
		return a.noTime(clock)
	}
	to, more, found := find(s, strings.TrimSpace(rest))
	switch {
	case !found || more != "":
		return a.notFound(rest)
	case to.Label == from.Label:
		return a.printf("It is %s's turn already.", from.Name)
	}
	for _, t := range slices.Backward(from.Turns) {
		if t.Start >= at+1 || t.End <= at { // times are shown in whole seconds
			continue
		}
		return a.change(func(a protocol.Annotations) (protocol.Annotations, error) {
			return a.MoveTurn(from.Label, t.Start, t.End, to.Label)
		}, "The turn at %s is %s's now. Undo reverts it.", display.Clock(t.Start), to.Name)
	}
	return a.printf("%s has no turn at %s that is over; last lists turns.", from.Name, clock)
}

func (a *Accessible) mute(args string) error {
	p, rest, found := find(a.session(), args)
	if !found || rest != "" {
		return a.notFound(args)
	}
	return a.change(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Mute(p.Label, !p.Muted), nil },
		"%s.", display.MuteText(p.Name, !p.Muted))
}

// offerToRemember offers once to remember the voice of a speaker who got a name.
func (a *Accessible) offerToRemember(was display.Speaker) error {
	s := a.session()
	name := s.Name(was.Label)
	if a.o.Memory == nil || !a.o.Memory.Asks() || a.offered[was.Label] || name == s.Match(was.Label) {
		return a.failure()
	}
	a.offered[was.Label] = true
	if a.o.Memory.Stored(name) {
		return a.printf("A voice of %s is stored already. Type remember %s to replace it with this one, or never, to stop being asked.", name, name)
	}
	return a.printf("Remember the voice of %s, on this machine only? Type remember %s, or never, to stop being asked.", name, name)
}

func (a *Accessible) remember(args string) error {
	s := a.session()
	p, rest, found := find(s, args)
	switch {
	case !found || rest != "":
		return a.notFound(args)
	case s.Annotations.Name(p.Label) == p.Label:
		return a.printf("%s has no name yet. Type name %s and the name.", p.Name, p.Name)
	}
	return a.result(a.o.Memory.Remember(p.Label))
}

func (a *Accessible) never(string) error {
	return a.result("you are not asked again. Remember still learns a voice", a.o.Memory.Never())
}

// correctVoices applies changed names to what was learnt in this session.
func (a *Accessible) correctVoices() error {
	if a.o.Memory == nil {
		return a.failure()
	}
	return a.result(a.o.Memory.Correct())
}
