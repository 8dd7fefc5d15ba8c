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

// notFound reports that no speaker matches args.
func (c *CommandLine) notFound(args string) error {
	if args == "" {
		return c.printf("Who? Type a number, a label or a name; who lists them.")
	}
	return c.printf("No speaker is called %s; who lists all.", args)
}

// refused answers that a change of the annotations is not possible.
func (c *CommandLine) refused(err error) error { return c.printf("Nothing changed: %s.", err) }

func (c *CommandLine) name(args string) error {
	p, name, found := find(c.session(), args)
	switch {
	case !found:
		return c.notFound(args)
	case name == "":
		return c.printf("Which name? Type name %s and the name.", p.Name)
	}
	if err := c.o.Annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename(p.Label, name) }); err != nil {
		return c.refused(err)
	}
	_ = c.printf("%s is now %s.", p.Name, c.session().Name(p.Label))
	return c.offerToRemember(p)
}

func (c *CommandLine) merge(args string) error {
	s := c.session()
	from, rest, found := find(s, args)
	if !found {
		return c.notFound(args)
	}
	rest = strings.TrimSpace(strings.TrimPrefix(rest, "into "))
	into, more, found := find(s, rest)
	if !found || more != "" {
		return c.notFound(rest)
	}
	if from.Label == into.Label {
		return c.printf("%s cannot be merged with itself.", from.Name)
	}
	if err := c.o.Annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Merge(from.Label, into.Label) }); err != nil {
		return c.refused(err)
	}
	return c.printf("Merged %s into %s. Undo reverts it.", from.Name, into.Name)
}

func (c *CommandLine) move(args string) error {
	s := c.session()
	from, rest, found := find(s, args)
	if !found {
		return c.notFound(args)
	}
	clock, rest, _ := strings.Cut(rest, " ")
	at, ok := parseClock(clock)
	if !ok {
		return c.noTime(clock)
	}
	to, more, found := find(s, strings.TrimSpace(rest))
	switch {
	case !found || more != "":
		return c.notFound(rest)
	case to.Label == from.Label:
		return c.printf("It is %s's turn already.", from.Name)
	}
	for _, t := range slices.Backward(from.Turns) {
		if t.Start >= at+1 || t.End <= at { // times are shown in whole seconds
			continue
		}
		if err := c.o.Annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) {
			return a.MoveTurn(from.Label, t.Start, t.End, to.Label)
		}); err != nil {
			return c.refused(err)
		}
		return c.printf("The turn at %s is %s's now. Undo reverts it.", display.Clock(t.Start), to.Name)
	}
	return c.printf("%s has no turn at %s that is over; last lists turns.", from.Name, clock)
}

func (c *CommandLine) mute(args string) error {
	p, rest, found := find(c.session(), args)
	if !found || rest != "" {
		return c.notFound(args)
	}
	_ = c.o.Annotations.Update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Mute(p.Label, !p.Muted), nil })
	return c.printf("%s.", display.MuteText(p.Name, !p.Muted))
}

// offerToRemember offers once to remember the voice of a speaker who got a name.
func (c *CommandLine) offerToRemember(was display.Speaker) error {
	s := c.session()
	name := s.Name(was.Label)
	if c.o.Memory == nil || !c.o.Memory.Asks() || c.offered[was.Label] || name == s.Match(was.Label) {
		return c.out.failure()
	}
	c.offered[was.Label] = true
	return c.printf("Remember the voice of %s, on this machine only? Type remember %s, or never, to stop being asked.", name, name)
}

func (c *CommandLine) remember(args string) error {
	s := c.session()
	p, rest, found := find(s, args)
	switch {
	case !found || rest != "":
		return c.notFound(args)
	case s.Annotations.Name(p.Label) == p.Label:
		return c.printf("%s has no name yet. Type name %s and the name.", p.Name, p.Name)
	}
	return c.result(c.o.Memory.Remember(p.Label))
}

func (c *CommandLine) never(string) error {
	return c.result("hubbub does not ask again. remember still learns a voice", c.o.Memory.Never())
}

// correctVoices applies changed names to what was learnt in this session.
func (c *CommandLine) correctVoices() error {
	if c.o.Memory == nil {
		return c.out.failure()
	}
	return c.result(c.o.Memory.Correct())
}
