package engine

import (
	"cmp"
	"fmt"
	"time"

	"hubbub/localserver/engine/weights"
	"hubbub/protocol/hint"
)

// Version names the engine: it changes whenever the same samples may give other
// turns.
func Version() string { return "12-neural" }

// WeightsVersion names the embedded weights.
func WeightsVersion() string { return weights.Default().Version() }

// Config is what a stream may choose. The zero value means the defaults.
type Config struct {
	// Latency is how far behind the newest sample turns are committed,
	// 0.5 s to 5 s. Zero means DefaultLatency.
	Latency time.Duration
	// MaxSpeakers is the maximum number of labels, 1 to 8. Zero means 8.
	MaxSpeakers int
}

// The default and the bounds of Config.Latency.
const (
	DefaultLatency = time.Second
	MinLatency     = 500 * time.Millisecond
	MaxLatency     = 5 * time.Second
)

// Validate reports what is out of range. The error's Hint method says what may be
// chosen.
func (c Config) Validate() error {
	_, err := c.withDefaults()
	return err
}

func (c Config) withDefaults() (Config, error) {
	c.Latency, c.MaxSpeakers = cmp.Or(c.Latency, DefaultLatency), cmp.Or(c.MaxSpeakers, MaxSpeakers)
	if c.Latency < MinLatency || c.Latency > MaxLatency {
		return c, hint.Add(fmt.Errorf("a latency of %v is out of range", c.Latency),
			fmt.Sprintf("choose %v to %v", MinLatency, MaxLatency))
	}
	if c.MaxSpeakers < 1 || c.MaxSpeakers > MaxSpeakers {
		return c, hint.Add(fmt.Errorf("at most %d speakers is out of range", c.MaxSpeakers),
			fmt.Sprintf("choose 1 to %d", MaxSpeakers))
	}
	return c, nil
}
