package features

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"hubbub/localserver/engine/weights"
	"hubbub/protocol/testkit"
)

// A stream that continues with the channel of another one gives the frames that
// the other one would have given. One without that channel gives other frames.
func TestChannelOutlivesItsStream(t *testing.T) {
	e, x := New(weights.Default()), talk(8, 12)
	const cut = 700 // frames
	whole := e.NewStream().Push(x, nil)
	first := e.NewStream()
	if n := len(first.Push(x[:(cut-1)*Hop+Window], nil)); n != cut*Bands {
		t.Fatalf("%d values", n)
	}
	raw := first.Channel().Append(nil)
	testkit.Equal(t, len(raw), channelBytes, "bytes")
	c, rest, err := ParseChannel(append(raw, 7))
	if err != nil || !slices.Equal(rest, []byte{7}) {
		t.Fatalf("%v, and %v follows", err, rest)
	}
	second := e.NewStream()
	second.Resume(c)
	if !slices.Equal(second.Push(x[cut*Hop:], nil), whole[cut*Bands:]) {
		t.Error("a stream with the channel of an earlier one gives other frames")
	}
	if slices.Equal(e.NewStream().Push(x[cut*Hop:], nil), whole[cut*Bands:]) {
		t.Error("a stream without that channel gives the same frames: the test proves nothing")
	}
}

// TestChannelFields fails for a new field of Stream until this list says whether
// a later stream needs it.
func TestChannelFields(t *testing.T) {
	known := map[string]string{
		"e": "the same for every stream", "pending": "of the current frame",
		"channel": "kept",
		"fft":     "space", "frame": "space", "power": "space", "energy": "space",
	}
	typ := reflect.TypeFor[Stream]()
	for field := range typ.Fields() {
		if known[field.Name] == "" {
			t.Errorf("the list lacks %s", field.Name)
		}
	}
	if typ.NumField() != len(known) {
		t.Errorf("%d fields, %d in this list", typ.NumField(), len(known))
	}
}

func TestBadChannels(t *testing.T) {
	s := New(weights.Default()).NewStream()
	s.Push(talk(9, 1), nil)
	good := s.Channel()
	if _, _, err := ParseChannel(good.Append(nil)[1:]); err == nil {
		t.Error("a short record is taken")
	}
	for name, spoil := range map[string]func(*Channel){
		"a mean that is no number": func(c *Channel) { c.Mean[3] = math.NaN() },
		"a mean beyond reason":     func(c *Channel) { c.Mean[63] = 1e9 },
		"a floor that is infinite": func(c *Channel) { c.Floor = math.Inf(-1) },
		"a level that is infinite": func(c *Channel) { c.Level = math.Inf(1) },
		"a share beyond 1":         func(c *Channel) { c.Share = 1.5 },
		"a weight that is none":    func(c *Channel) { c.Weight = math.NaN() },
		"no frames":                func(c *Channel) { c.Count = 0 },
		"too many frames":          func(c *Channel) { c.Count = 2 * maxCount },
		"a count that is none":     func(c *Channel) { c.Count = math.NaN() },
	} {
		c := good
		spoil(&c)
		if _, _, err := ParseChannel(c.Append(nil)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// A stream may begin with samples that are next to nothing, and its channel is kept as well.
func TestChannelOfAFaintBeginning(t *testing.T) {
	for _, least := range []float32{1e-25, math.SmallestNonzeroFloat32} {
		s, x := New(weights.Default()).NewStream(), talk(10, 3)
		for i := range x[:SampleRate] {
			x[i] = least * float32(i%3-1)
		}
		s.Push(x, nil)
		if _, _, err := ParseChannel(s.Channel().Append(nil)); err != nil {
			t.Errorf("beginning with samples of %g: %v, level %g, floor %g", least, err, s.channel.Level, s.channel.Floor)
		}
	}
}
