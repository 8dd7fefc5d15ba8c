package capture

import (
	"fmt"
	"strconv"

	"hubbub/capture/audiofile"
	"hubbub/capture/device"
	"hubbub/capture/signal"
	"hubbub/protocol/hint"
)

// Channels selects the channels of an input.
type Channels int

const (
	// Mix is the mean of all channels. A number from 1 on is that channel alone.
	Mix Channels = 0
	// Each keeps the channels apart, as tracks: device.MaxChannels at most.
	Each Channels = -1
)

// ParseChannels reads "mix", "each" or the number of a channel, from 1 on.
func ParseChannels(text string) (Channels, error) {
	switch text {
	case "", "mix":
		return Mix, nil
	case "each":
		return Each, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > audiofile.MaxChannels {
		return Mix, hint.Errorf("Choose mix, each, or the number of a channel.", "%q selects no channel", text)
	}
	return Channels(n), nil
}

// converter selects the channels of an input and converts each track to 16 kHz.
type converter struct {
	channels int // of the input
	selected Channels
	tracks   []*signal.Resampler
	in       []float32 // of one track
	out      [][]float32
	invalid  int64 // samples that were not numbers

	// The energy of the mix, and that of its channels. Without correlation between the channels they are equal.
	mixed, apart float64
}

// cancelled reports whether the mix has lost 20 dB, because channels have opposite phase.
func (conv *converter) cancelled() bool { return conv.mixed < 0.01*conv.apart }

// channelsError is an input without the selected channels.
type channelsError struct{ error }

func (e channelsError) Unwrap() error { return e.error }

// channelCount is "1 channel", "2 channels".
func channelCount(n int) string {
	if n == 1 {
		return "1 channel"
	}
	return fmt.Sprintf("%d channels", n)
}

// newConverter returns a channelsError if the input does not have the selected channels.
func newConverter(rate, channels int, selected Channels) (*converter, error) {
	tracks := 1
	switch {
	case selected == Each:
		tracks = channels
	case int(selected) > channels:
		return nil, channelsError{hint.Errorf("Choose one of its channels with --channels, or mix.", "the input has %s, not %d", channelCount(channels), selected)}
	}
	if tracks > device.MaxChannels {
		return nil, channelsError{hint.Errorf("Choose one with --channels N, or mix.", "the input has %d channels; each takes at most %d", channels, device.MaxChannels)}
	}
	conv := &converter{channels: channels, selected: selected, out: make([][]float32, tracks)}
	for range tracks {
		conv.tracks = append(conv.tracks, signal.NewResampler(rate, SampleRate))
	}
	return conv, nil
}

// push appends to out what complete frames of input give, interleaved by track.
func (conv *converter) push(in, out []float32) []float32 {
	for i := range in {
		if !(in[i] >= -audiofile.MaxSample && in[i] <= audiofile.MaxSample) {
			conv.invalid++
			in[i] = 0
		}
	}
	for t, rs := range conv.tracks {
		conv.in = conv.in[:0]
		switch {
		case conv.selected == Mix:
			scale := 1 / float32(conv.channels)
			for i := 0; i < len(in); i += conv.channels {
				var sum float32
				for _, x := range in[i : i+conv.channels] {
					sum += x
					conv.apart += float64(x) * float64(x)
				}
				conv.mixed += float64(sum) * float64(sum)
				conv.in = append(conv.in, sum*scale)
			}
		default:
			c := t
			if conv.selected > 0 {
				c = int(conv.selected) - 1
			}
			for i := c; i < len(in); i += conv.channels {
				conv.in = append(conv.in, in[i])
			}
		}
		conv.out[t] = rs.Push(conv.in, conv.out[t][:0])
	}
	return conv.interleave(out)
}

// flush ends the input and appends what remains.
func (conv *converter) flush(out []float32) []float32 {
	for t, rs := range conv.tracks {
		conv.out[t] = rs.Flush(conv.out[t][:0])
	}
	return conv.interleave(out)
}

func (conv *converter) interleave(out []float32) []float32 {
	if len(conv.out) == 1 {
		return append(out, conv.out[0]...)
	}
	for i := range conv.out[0] { // all tracks have the same rate, so the same length
		for _, track := range conv.out {
			out = append(out, track[i])
		}
	}
	return out
}

// separate divides interleaved samples: the tracks one after the other, and their
// mean.
func separate(interleaved []float32, tracks int) (apart, mean []float32) {
	n := len(interleaved) / tracks
	apart, mean = make([]float32, len(interleaved)), make([]float32, n)
	for i, x := range interleaved {
		apart[i%tracks*n+i/tracks] = x
		mean[i/tracks] += x / float32(tracks)
	}
	return apart, mean
}

// String is what ParseChannels reads.
func (c Channels) String() string {
	switch c {
	case Mix:
		return "mix"
	case Each:
		return "each"
	}
	return fmt.Sprint(int(c))
}
