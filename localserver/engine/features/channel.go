package features

import (
	"encoding/binary"
	"errors"
	"math"
)

// Channel is what a stream has learnt of the way that sound comes to it:
// microphone, room, who is there. A later stream of the same conversation goes
// on with it, because under another mean the same person sounds like another one.
type Channel struct {
	Mean  [Bands]float64 // the running mean of each band
	Count float64        // frames that it weighs
	Floor float64        // level of the background
	Known bool           // Floor has a value
}

// channelBytes is the length of a written Channel.
var channelBytes = binary.Size(Channel{})

// mostLog bounds a mean and a floor, which are natural logarithms of energies.
const mostLog = 60

// errChannel is a record that no Channel was written to.
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
	sound := c.Count >= priorCount && c.Count <= maxCount && math.Abs(c.Floor) <= mostLog
	for _, x := range c.Mean {
		sound = sound && math.Abs(x) <= mostLog
	}
	if !sound {
		return Channel{}, nil, errChannel
	}
	return c, raw[channelBytes:], nil
}

// Channel is what the stream knows of its channel now.
func (s *Stream) Channel() Channel { return s.channel }

// Resume makes a stream that has heard nothing yet go on with the channel of an
// earlier one.
func (s *Stream) Resume(c Channel) { s.channel = c }
