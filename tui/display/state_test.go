package display

import (
	"testing"
)

func TestHistory(t *testing.T) {
	var h History
	for _, seq := range []int64{0, 1, 4, 3, 5, 9} {
		h.Add(seq, Level{RMS: float32(seq) + 1})
	}
	if got := h.Levels(); len(got) != 10 || got[4].RMS != 5 || got[3].RMS != 0 || got[9].RMS != 10 {
		t.Errorf("levels %v", got)
	}
}
