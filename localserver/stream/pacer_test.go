package stream

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer{now: time.Now}
		time.Sleep(30 * time.Second) // a late first chunk is no credit
		for i := range 50 {
			if !p.chunk() {
				t.Fatalf("chunk %d: 5 s ahead is allowed", i)
			}
		}
		if p.chunk() {
			t.Fatal("5.1 s ahead is accepted")
		}
	})
}

func TestPaceLetsAClientCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer{now: time.Now}
		p.chunk()
		time.Sleep(20 * time.Second) // the network was interrupted
		for i := range 249 {
			if !p.chunk() {
				t.Fatalf("delayed chunk %d is refused", i)
			}
		}
		if p.chunk() {
			t.Fatal("more than was delayed is accepted")
		}
	})
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
