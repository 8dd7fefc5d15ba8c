package capture

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/capture/device"
	"hubbub/protocol/testkit"
)

// opener replaces what Switch opens: microphones by their input.
func (x *outageTest) opener(devices map[string]*fakeDevice) {
	config := x.ChunkReader.opened.micConfig
	config.open = opener(func(want string) device.Stream {
		if d := devices[want]; d != nil {
			return d
		}
		return nil
	})
	x.open = func(ctx context.Context, input string, _ Channels) (*microphone, error) {
		return openMicWith(ctx, input, config)
	}
}

// TestSwitch: a chosen device continues the stream without a gap, on its clock; one
// that does not open, is silent, or has other channels changes nothing.
func TestSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk, headset, stuck, stereo := speaking(0, 0), speaking(0, 0), speaking(0, 1), speaking(0, 0)
		stereo.channels = 2
		desk.lostAt, headset.lostAt = 2, 3
		defer close(stuck.release)
		x := startOutage(t, "desk", func(string) device.Stream { return desk })
		x.opener(map[string]*fakeDevice{"mic:headset": headset, "mic:stuck": stuck})
		wait(3050 * time.Millisecond)
		for _, input := range []string{"mic:none", "mic:stuck", "meeting.wav"} {
			if _, err := x.Switch(t.Context(), input); err == nil {
				t.Errorf("switched to %s", input)
			}
		}
		if st := x.Stats(); st.Device != "desk" || desk.closed.Load() != 0 {
			t.Errorf("%q is used, the first device was closed %d times", st.Device, desk.closed.Load())
		}
		before := x.Stats().Position
		go func() {
			for {
				select {
				case <-x.Changed():
					if st := x.Stats(); st.StandsIn != "" {
						t.Errorf("the chosen %q stands in for %q", st.Device, st.StandsIn)
					}
				case <-x.done:
					return
				}
			}
		}()
		name, err := x.Switch(t.Context(), "mic:headset")
		testkit.Equal(t, name, "mic:headset", err)
		wait(time.Second)
		if st := x.Stats(); st.Device != "mic:headset" || len(st.Gaps) != 0 || st.Overflows != 2 || desk.closed.Load() != 1 {
			t.Errorf("%q is used, gaps %v, %d overflows, the first device was closed %d times", st.Device, st.Gaps, st.Overflows, desk.closed.Load())
		}
		wait(5 * time.Second)
		x.check(t, before.Seconds()+6.2)
		x.end()
		<-x.done
		if headset.closed.Load() != 1 {
			t.Errorf("the chosen device was closed %d times", headset.closed.Load())
		}
		if _, err := x.Switch(t.Context(), "mic:headset"); !errors.Is(err, errOver) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestSwitchInAnOutage: a chosen device ends the outage of another one.
func TestSwitchInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := startOutage(t, "desk", unplugged)
		x.opener(map[string]*fakeDevice{"mic:headset": speaking(0, 0)})
		wait(8 * time.Second)
		if x.Stats().Outage == nil {
			t.Fatal("there is no outage")
		}
		testkit.Must(x.Switch(t.Context(), "mic:headset"))(t)
		wait(4 * time.Second)
		st := x.Stats()
		if st.Outage != nil || len(st.Gaps) != 1 || st.Gaps[0].Start > 3.2 || st.Gaps[0].End < 7.8 || st.Gaps[0].End > 8.5 {
			t.Errorf("outage %v, gaps %v", st.Outage, st.Gaps)
		}
		x.check(t, 12.1)
		x.end()
		<-x.done
	})
}

// TestSwitchFromAStalledDevice: the device that the user replaces is closed when it is not being reopened any more. The
// race detector judges this.
func TestSwitchFromAStalledDevice(t *testing.T) {
	stalled := speaking(0, 2)
	src := openFake(t, stalled, 200*time.Millisecond)
	ctx, end := context.WithCancel(t.Context())
	r := NewChunkReader(ctx, src, Realtime)
	chosen := openFake(t, speaking(0, 0), time.Minute)
	r.open = func(context.Context, string, Channels) (*microphone, error) { return chosen, nil }
	reopening, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for c := range r.Chunks() {
			if c.Seq == 6 { // it has been closed once, to be reopened
				close(reopening)
			}
		}
	}()
	<-reopening
	testkit.Must(r.Switch(t.Context(), "mic:other"))(t)
	close(stalled.release)
	end()
	<-done
	<-src.ended
}

// TestSwitchFromAStandIn: the device that the replaced one stood in for does not take the place of the chosen one.
func TestSwitchFromAStandIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, find := 0, comesBack(speaking(0, 0))
		x := startOutage(t, "headset", func(want string) device.Stream {
			d := find(want)
			if want != "" && d != nil {
				opened++
			}
			return d
		})
		x.opener(map[string]*fakeDevice{"mic:other": speaking(0, 0)})
		wait(20 * time.Second)
		if st := x.Stats(); st.StandsIn != "headset" {
			t.Fatalf("%+v", st)
		}
		testkit.Must(x.Switch(t.Context(), "mic:other"))(t)
		wait(20 * time.Second)
		if st := x.Stats(); st.Device != "mic:other" || st.StandsIn != "" || opened != 1 {
			t.Errorf("%+v, the headset was opened %d times", st, opened)
		}
		x.end()
		<-x.done
	})
}
