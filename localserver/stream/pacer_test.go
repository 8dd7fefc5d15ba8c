package stream

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(time.Now, false)
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
		p := newPacer(time.Now, false)
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
		p := newPacer(time.Now, false)
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
	p := newPacer(time.Now, true)
	for range 1000 {
		if !p.chunk() {
			t.Fatal("refused")
		}
	}
}

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(time.Now, true)
		after := func(d time.Duration, want bool) {
			t.Helper()
			time.Sleep(d)
			if p.silent() != want {
				t.Fatalf("silent is %v", !want)
			}
		}
		after(59*time.Second, false)
		after(time.Second, true) // also if no audio ever arrived
		p.chunk()
		after(0, false)
		p.block(true) // the diarizer is busy, which is not the client's fault
		after(time.Hour, false)
		p.block(false)
		after(59*time.Second, false)
		after(time.Second, true)
	})
}
