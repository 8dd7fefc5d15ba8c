package tui

import "hubbub/tui/display"

// What voices.go is for the screen, for the accessible display: it offers once to
// remember the voice of a speaker who got a name.

func (c *CommandLine) offerToRemember(was display.Speaker) error {
	s := c.session()
	name := s.Name(was.Label)
	if c.o.Memory == nil || !c.o.Memory.Asks() || c.offered[was.Label] || name == s.Match(was.Label) {
		return c.out.failure()
	}
	if c.offered == nil {
		c.offered = map[string]bool{}
	}
	c.offered[was.Label] = true
	return c.printf("Remember the voice of %s, on this machine only? Type remember %s, or never to be asked no more.", name, name)
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
	text, err := c.o.Memory.Remember(p.Label)
	if err != nil {
		return c.failed(err)
	}
	return c.printf("%s.", display.Clean(text))
}

func (c *CommandLine) never(string) error {
	if err := c.o.Memory.Never(); err != nil {
		return c.failed(err)
	}
	return c.printf("hubbub does not ask again. remember still learns a voice.")
}

// correctVoices applies changed names to what was learnt in this session.
func (c *CommandLine) correctVoices() error {
	if c.o.Memory == nil {
		return c.out.failure()
	}
	text, err := c.o.Memory.Correct()
	switch {
	case err != nil:
		return c.failed(err)
	case text != "":
		return c.printf("%s.", display.Clean(text))
	}
	return c.out.failure()
}
