package signal

import (
	"bufio"
	"errors"
	"io"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hubbub/capture/audiofile"
	"hubbub/capture/capturetest"
	"hubbub/protocol/testkit"
)

const chunk = SampleRate / 10 // samples, 100 ms

// speechLike is noise in syllables and pauses, reproducible.
func speechLike(seed uint64, seconds int, talks func(at float64) bool) []float32 {
	random := rand.New(rand.NewPCG(seed, 7))
	x := make([]float32, seconds*SampleRate)
	level := 0.0
	for i := range x {
		if i%(SampleRate/8) == 0 { // a syllable
			if level = 0; talks(float64(i) / SampleRate) {
				level = 0.3 * math.Pow(10, -random.Float64())
			}
		}
		x[i] = float32(level*random.NormFloat64()*0.4 + 1e-4*random.NormFloat64())
	}
	return x
}

// TestEchoIsSuppressed: of an echo 3 to 20 dB down and 0 to 300 ms late, little is
// left while the far side speaks alone; somebody here is heard.
func TestEchoIsSuppressed(t *testing.T) {
	far := speechLike(1, 30, func(at float64) bool { return int(at/5)%2 == 0 })
	near := speechLike(2, 30, func(at float64) bool { return int(at/5)%4 == 1 })
	for _, down := range []float64{3, 20, 200} {
		for _, delay := range []int{0, 37, 300} {
			gain := float32(math.Pow(10, -down/20))
			x := make([]float32, 2*len(far))
			for i := range far {
				x[2*i], x[2*i+1] = near[i], far[i]
				if j := i - delay*SampleRate/1000; j >= 0 {
					x[2*i] += gain * far[j]
				}
			}
			s := NewEchoSuppressor()
			for at := 0; at < len(x); at += 2 * chunk {
				s.Suppress(x[at : at+2*chunk])
			}
			var echo, all, left, here float64
			for i := 10 * SampleRate; i < len(far); i++ { // after 10 s it knows the echo
				at, y := float64(i)/SampleRate, float64(x[2*i])
				switch phase := int(at/5) % 4; {
				case phase%2 == 0:
					if j := i - delay*SampleRate/1000; j >= 0 {
						all += float64(gain*far[j]) * float64(gain*far[j])
					}
					echo += y * y
				case phase == 1 && at-5*float64(int(at/5)) > 0.5:
					here += float64(near[i]) * float64(near[i])
					left += y * y
				}
			}
			t.Logf("echo %.0f dB down, %d ms late: %.1f dB of it left, %.1f dB of the speech here", down, delay, capturetest.DB(echo/all), capturetest.DB(left/here))
			if down < 100 && capturetest.DB(echo/all) > -10 {
				t.Errorf("echo %.0f dB down, %d ms late: %.1f dB of it left", down, delay, capturetest.DB(echo/all))
			}
			if capturetest.DB(left/here) < -1 {
				t.Errorf("echo %.0f dB down, %d ms late: %.1f dB of the speech here is left", down, delay, capturetest.DB(left/here))
			}
		}
	}
}

// TestEchoInRooms: of what loudspeakers play in measured rooms, little is left in the
// microphone's track, and what is said here stays there. The two sides of the call are
// the speakers of a simulated meeting.
func TestEchoInRooms(t *testing.T) {
	speech := filepath.Join("..", "..", "..", "shared", "speech")
	rooms, err := filepath.Glob(filepath.Join(speech, "rooms", "*.flac"))
	if err != nil || len(rooms) == 0 || testing.Short() {
		t.Skip("takes many room responses from " + speech)
	}
	far, near := sides(t, filepath.Join(speech, "sim-fluent", "sims00"), 60)
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range near { // of the room
		near[i] += float32(1e-3 * noise.NormFloat64())
	}
	var echoes, losses []float64
	for i := 0; i < len(rooms); i += 20 {
		echo := convolve(far, openAll(t, rooms[i]))
		loss := math.Sqrt(power(echo) / power(far))
		for _, c := range []struct {
			down  float64 // dB
			delay int     // ms
		}{{3, 0}, {3, 300}, {10, 100}, {20, 0}, {20, 300}} {
			late := make([]float32, len(far))
			for i := c.delay * SampleRate / 1000; i < len(far); i++ {
				late[i] = float32(math.Pow(10, -c.down/20)/loss) * echo[i-c.delay*SampleRate/1000]
			}
			left, lost := inRoom(near, far, late)
			t.Logf("%s, %.0f dB down, %d ms late: %.1f %% of the echo is left, %.1f %% of the speech here is lost", filepath.Base(rooms[i]), c.down, c.delay, 100*left, 100*lost)
			echoes, losses = append(echoes, left), append(losses, lost)
		}
	}
	for _, c := range []struct {
		what            string
		shares          []float64
		median, highest float64
	}{{"echo left", echoes, 0.03, 0.3}, {"speech here lost", losses, 0.01, 0.05}} {
		slices.Sort(c.shares)
		median, highest := c.shares[len(c.shares)/2], c.shares[len(c.shares)-1]
		t.Logf("%s: median %.1f %%, at most %.1f %%", c.what, 100*median, 100*highest)
		if median > c.median || highest > c.highest {
			t.Errorf("%s: want a median of %.1f %% and at most %.1f %%", c.what, 100*c.median, 100*c.highest)
		}
	}
}

// inRoom returns two shares of frames of 20 ms, from when an echo is known: of those with echo and no speech here the ones
// that are not silenced, and of those with speech here the ones that are.
func inRoom(near, far, echo []float32) (left, lost float64) {
	x := make([]float32, 2*len(far))
	for i := range far {
		x[2*i], x[2*i+1] = near[i]+echo[i], far[i]
	}
	s := NewEchoSuppressor()
	known := 0
	for at := 0; at+2*chunk <= len(x); at += 2 * chunk {
		s.Suppress(x[at : at+2*chunk])
		if s.delay < 0 {
			known = at/2 + chunk
		}
	}
	var echoes, here float64
	for at := known; at+chunk <= len(far); at += echoFrame {
		silenced := x[2*at] == 0
		switch n, e := power(near[at:at+echoFrame]), power(echo[at:at+echoFrame]); {
		case n < farSpeech && e > farSpeech:
			if echoes++; !silenced {
				left++
			}
		case n > 10*farSpeech:
			if here++; silenced {
				lost++
			}
		}
	}
	return left / echoes, lost / here
}

// sides are the first seconds of two sides of a call: the first speaker of a meeting, and the others. Where both speak,
// both are silent.
func sides(t *testing.T, meeting string, seconds int) (one, other []float32) {
	all := openAll(t, meeting+".flac")[:seconds*SampleRate]
	one, other = make([]float32, len(all)), make([]float32, len(all))
	f := testkit.Must(os.Open(meeting + ".rttm"))(t)
	defer f.Close()
	who := make([]string, len(all))
	first := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		start, _ := strconv.ParseFloat(fields[3], 64)
		length, _ := strconv.ParseFloat(fields[4], 64)
		if first == "" {
			first = fields[7]
		}
		for i := int(start * SampleRate); i < min(len(who), int((start+length)*SampleRate)); i++ {
			if who[i] != "" && who[i] != fields[7] {
				who[i] = "both"
			} else {
				who[i] = fields[7]
			}
		}
	}
	for i, w := range who {
		switch w {
		case "", "both":
		case first:
			one[i] = all[i]
		default:
			other[i] = all[i]
		}
	}
	return one, other
}

// openAll is a recording at 16 kHz, as it is.
func openAll(t *testing.T, path string) []float32 {
	f := testkit.Must(os.Open(path))(t)
	defer f.Close()
	info := testkit.Must(f.Stat())(t)
	dec := testkit.Must(audiofile.Open(path, f, info.Size(), &audiofile.Notices{}))(t)
	if f := dec.Format(); f.Rate != SampleRate || f.Channels != 1 {
		t.Fatalf("%s: %d Hz, %d channels", path, f.Rate, f.Channels)
	}
	var all []float32
	for block := make([]float32, 1<<16); ; {
		n, err := dec.Read(block)
		if all = append(all, block[:n]...); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func power(x []float32) (p float64) {
	for _, v := range x {
		p += float64(v) * float64(v)
	}
	return p / float64(len(x))
}

// convolve is x through a response, as long as x.
func convolve(x, response []float32) []float32 {
	n := 1
	for n < len(x)+len(response) {
		n *= 2
	}
	a, b := make([]complex128, n), make([]complex128, n)
	for i, v := range x {
		a[i] = complex(float64(v), 0)
	}
	for i, v := range response {
		b[i] = complex(float64(v), 0)
	}
	roots := make([]complex128, n/2)
	for i := range roots {
		roots[i] = cmplx.Rect(1, -2*math.Pi*float64(i)/float64(n))
	}
	a, b = transform(a, roots), transform(b, roots)
	for i := range a {
		a[i] = cmplx.Conj(a[i] * b[i])
	}
	a = transform(a, roots) // the inverse, of a real signal
	out := make([]float32, len(x))
	for i := range out {
		out[i] = float32(real(a[i]) / float64(n))
	}
	return out
}

// transform is the discrete Fourier transform; len(x) is a power of 2, and the roots of unity are of it or of a multiple.
func transform(x, roots []complex128) []complex128 {
	n := len(x)
	if n == 1 {
		return x
	}
	half := make([]complex128, n)
	for i := range n / 2 {
		half[i], half[n/2+i] = x[2*i], x[2*i+1]
	}
	even, odd := transform(half[:n/2], roots), transform(half[n/2:], roots)
	for i := range n / 2 {
		o := roots[i*(2*len(roots)/n)] * odd[i]
		half[i], half[n/2+i] = even[i]+o, even[i]-o // even and odd lie elsewhere
	}
	return half
}
