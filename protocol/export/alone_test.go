package export

import (
	"slices"
	"testing"

	"hubbub/protocol"
)

// TestAlone: the stretches of a speaker are those without others that are long enough, the
// longest ones if there are too many.
func TestAlone(t *testing.T) {
	turn := func(label string, start, end float64) protocol.Turn {
		return protocol.Turn{Speaker: label, Start: start, End: end}
	}
	alone := []protocol.Turn{turn("A", 0, 10), turn("A", 12, 12.3)}
	both := append(alone, turn("B", 4, 5), turn("B", 9.8, 20))
	for _, c := range []struct {
		turns []protocol.Turn
		most  float64
		want  []protocol.Span
	}{
		{alone, 30, []protocol.Span{{Start: 0, End: 10}}},
		{both, 30, []protocol.Span{{Start: 0, End: 4}, {Start: 5, End: 9.8}}},
		{both, 4, []protocol.Span{{Start: 5, End: 9}}},
		{both, 6, []protocol.Span{{Start: 0, End: 1.2}, {Start: 5, End: 9.8}}},
	} {
		got := New(Info{}, c.turns, protocol.Annotations{}).Alone(0, c.most)
		for i := range got {
			got[i] = protocol.Span{Start: protocol.Round1ms(got[i].Start), End: protocol.Round1ms(got[i].End)}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v of %v: %v, want %v", c.most, c.turns, got, c.want)
		}
	}
}
