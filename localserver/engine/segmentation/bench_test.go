//go:build unix

package segmentation

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"hubbub/localserver/engine/embedding"
)

// cpuTime is the CPU time of this process, which does not depend on other load as
// the wall clock does.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStages measures, for each hop, the CPU time in milliseconds of each stage
// for a second of audio: the trunk and the blocks up to the newest frame, a window
// of 5 s, and the embeddings of four masks over it.
func BenchmarkStages(b *testing.B) {
	for _, hop := range []int{50, 25} {
		b.Run(fmt.Sprintf("hop=%dms", hop*10), func(b *testing.B) {
			p, _ := newPair(b, Window)
			x, logp := frames(7, hop), make([]float32, 0, Window*Split*Classes)
			mask, vector := make([]float32, Window), make([]float32, embedding.Size)
			for i := range mask {
				mask[i] = float32(i / 20 % 2)
			}
			stages := []struct {
				name string
				run  func()
				cost time.Duration
			}{
				{"trunk", func() { p.emb.Append(x); p.emb.Update() }, 0},
				{"blocks", func() { p.seg.Append(x); p.seg.Update(p.emb.Trunk()) }, 0},
				{"window", func() { logp = p.seg.Window(p.seg.Len()-Window, p.seg.Len(), logp[:0]) }, 0},
				{"embed4", func() {
					for range 4 {
						p.emb.Embed(p.emb.Len()-Window, mask, vector)
					}
					p.emb.Flush()
				}, 0},
			}
			for range 1000 / hop {
				for i := range stages {
					stages[i].run()
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				for i := range stages {
					begin := cpuTime()
					stages[i].run()
					stages[i].cost += cpuTime() - begin
				}
			}
			for _, s := range stages {
				b.ReportMetric(s.cost.Seconds()*1e3/(float64(b.N)*float64(hop)/100), s.name+"-ms/s")
			}
		})
	}
}
