package localserver

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	c := newClock()
	p := newPacer(c.now, false)
	c.move(30 * time.Second) // a late beginning is no credit
	for i := range 50 {
		if !p.chunk() {
			t.Fatalf("chunk %d: 5 s ahead is allowed", i)
		}
	}
	if p.chunk() {
		t.Fatal("5.1 s ahead")
	}
}

func TestPaceLetsAClientCatchUp(t *testing.T) {
	c := newClock()
	p := newPacer(c.now, false)
	p.chunk()
	c.move(20 * time.Second) // the network was away
	for i := range 249 {
		if !p.chunk() {
			t.Fatalf("chunk %d of those that were held up", i)
		}
	}
	if p.chunk() {
		t.Fatal("more than was held up")
	}
}

// A sound card that is fast by 100 in a million is not to blame, all day long.
func TestPaceForgivesClocks(t *testing.T) {
	c := newClock()
	p := newPacer(c.now, false)
	for i := range 24 * 36000 {
		if !p.chunk() {
			t.Fatalf("after %v", time.Duration(i)*100*time.Millisecond)
		}
		c.move(100*time.Millisecond - 10*time.Microsecond)
	}
}

func TestSilence(t *testing.T) {
	c := newClock()
	p := newPacer(c.now, true)
	at := func(d time.Duration, want bool) {
		t.Helper()
		c.move(d)
		if p.silent() != want {
			t.Fatalf("silent is %v", !want)
		}
	}
	at(59*time.Second, false)
	at(time.Second, true) // also when there never was any
	p.chunk()
	at(0, false)
	p.hold(true) // the engine is busy: not the client's fault
	at(time.Hour, false)
	p.hold(false)
	at(59*time.Second, false)
	at(time.Second, true)
}
