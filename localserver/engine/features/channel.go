package features

import (
	"encoding/binary"
	"errors"
	"math"
)

// Channel is the state of the normalisation: what a stream has learnt of its
// microphone and room. A later stream of the same conversation continues with
// it, because under another mean the embeddings of a speaker differ. Levels and
// means are natural logarithms of power.
type Channel struct {
	Mean   [Bands]float64 // running mean of each band, without the prior
	Share  float64        // of the prior in the mean, 1 at the beginning
	Count  float64        // frames that the mean weighs
	Level  float64        // of loud speech
	Floor  float64        // mean over the bands of the background
	Weight float64        // of the newest frame in the mean
	Signal bool           // there was a signal: Level and Floor have values
}

func newChannel() Channel { return Channel{Share: 1, Count: priorCount} }

// follow moves the level by a frame of that mean power.
func (c *Channel) follow(power float64) {
	if power <= 0 {
		return
	}
	now := math.Log(power)
	if !c.Signal {
		c.Level, c.Signal, c.Floor = now+levelStart, true, math.Inf(1)
	}
	if c.Share > startShare && now+levelStart+startMargin < c.Level {
		c.Level = now + levelStart // what was taken for the background was louder than it
	}
	if now > c.Level {
		c.Level += levelAttack * (now - c.Level)
	} else {
		c.Level += levelDecay * c.Weight * (now - c.Level)
	}
}

// weigh sets how much a frame of this mean over the bands counts for the
// running mean.
func (c *Channel) weigh(frame float64) {
	switch {
	case math.IsInf(c.Floor, 1): // the first frame
		c.Floor = frame
	case frame < c.Floor:
		c.Floor += floorFall * (frame - c.Floor)
	default:
		c.Floor += floorRise
	}
	switch {
	case frame < logFloor+signalMargin+c.Level:
		c.Weight = 0
	case frame > c.Floor+speechMargin:
		c.Weight = 1
	default:
		c.Weight = silenceWeight
	}
	c.Count = min(c.Count+c.Weight, maxCount)
}

// channelBytes is the length of a written Channel.
var channelBytes = binary.Size(Channel{})

// maxLogPower bounds a mean, a level and a floor, which are natural logarithms of
// energies: those of the smallest samples are above -250.
const maxLogPower = 300

// errChannel reports bytes that Append did not write.
var errChannel = errors.New("not a record of a channel")

// Append appends the written form to out: the fields in order, little-endian.
func (c Channel) Append(out []byte) []byte {
	out, _ = binary.Append(out, binary.LittleEndian, &c) // of fixed size: never fails
	return out
}

// ParseChannel reads what Append wrote at the beginning of raw, and returns what
// follows it.
func ParseChannel(raw []byte) (c Channel, rest []byte, err error) {
	if len(raw) < channelBytes {
		return c, nil, errChannel
	}
	_, _ = binary.Decode(raw, binary.LittleEndian, &c) // the length is checked
	sound := c.Count >= priorCount && c.Count <= maxCount && c.Share >= 0 && c.Share <= 1 &&
		math.Abs(c.Floor) <= maxLogPower && math.Abs(c.Level) <= maxLogPower && c.Weight >= 0 && c.Weight <= 1
	for _, x := range c.Mean {
		sound = sound && math.Abs(x) <= maxLogPower
	}
	if !sound {
		return Channel{}, nil, errChannel
	}
	return c, raw[channelBytes:], nil
}

// Channel returns the state of the normalisation.
func (s *Stream) Channel() Channel { return s.channel }

// Resume makes a stream that has got no samples yet continue with the channel
// of an earlier one.
func (s *Stream) Resume(c Channel) { s.channel = c }
