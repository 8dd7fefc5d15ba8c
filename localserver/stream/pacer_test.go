package stream

import (
	"testing"
	"testing/synctest"
	"time"
)

// A client may be 5 s ahead, and send at once what an interrupted network has delayed.
func TestPace(t *testing.T) {
	for outage, allowed := range map[time.Duration]int{0: 50, 20 * time.Second: 250} {
		synctest.Test(t, func(t *testing.T) {
			p := pacer{now: time.Now}
			time.Sleep(30 * time.Second) // a late first chunk is no credit
			for i := range allowed {
				if !p.chunk() {
					t.Fatalf("chunk %d of %d is refused", i, allowed)
				}
				if i == 0 {
					time.Sleep(outage)
				}
			}
			if p.chunk() {
				t.Fatalf("more than %d chunks are accepted", allowed)
			}
		})
	}
}

// A sound card that is fast by 100 in a million is accepted, all day long.
func TestPaceToleratesDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer{now: time.Now}
		for i := range 24 * 900 {
			for range 40 {
				if !p.chunk() {
					t.Fatalf("refused after %v", time.Duration(4*i)*time.Second)
				}
			}
			time.Sleep(4*time.Second - 400*time.Microsecond)
		}
	})
}

func TestUnpaced(t *testing.T) {
	p := pacer{now: time.Now, unpaced: true}
	for range 1000 {
		if !p.chunk() {
			t.Fatal("refused")
		}
	}
}
