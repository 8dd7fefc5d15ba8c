package datafolder

import "testing"

// A check never fails on what is in a block, and never takes it for intact.
func FuzzScanBlock(f *testing.F) {
	f.Add([]byte("\x1e\x00\x00\x00 record"), 3)
	f.Fuzz(func(t *testing.T, raw []byte, index int) {
		b, err := scanBlock("S", index, true, raw)
		if err != nil || len(b.intact)+b.damaged > len(raw) {
			t.Fatalf("%+v %v", b, err)
		}
	})
}
