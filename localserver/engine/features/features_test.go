package features

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"hubbub/localserver/engine/weights"
)

// Frames is the number of frames that n samples fill.
func Frames(n int) int {
	if n < Window {
		return 0
	}
	return 1 + (n-Window)/Hop
}

// bank is the mel filter bank from its definition: HTK mel, 20 to 7600 Hz, peak 1.
func bank() []float32 {
	mel := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	edge := func(i int) float64 {
		m := mel(20) + (mel(7600)-mel(20))*float64(i)/(Bands+1)
		return 700 * (math.Pow(10, m/2595) - 1)
	}
	w := make([]float32, (half+1)*Bands)
	for k := range half + 1 {
		f := float64(k) * SampleRate / fftSize
		for b := range Bands {
			lo, mid, hi := edge(b), edge(b+1), edge(b+2)
			w[k*Bands+b] = float32(max(0, min((f-lo)/(mid-lo), (hi-f)/(hi-mid))))
		}
	}
	return w
}

func noise(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * .1 * (1 + math.Sin(float64(i)/3000)))
	}
	return x
}

func TestPowerAgainstDefinition(t *testing.T) {
	var f fft
	var x [fftSize]float64
	var p [half + 1]float64
	r := rand.New(rand.NewPCG(1, 1))
	for range 3 {
		for i := range x {
			x[i] = r.NormFloat64()
		}
		f.power(&x, &p)
		for k := range p {
			var sum complex128
			for i, v := range x {
				sum += complex(v, 0) * cmplx.Exp(complex(0, -2*math.Pi*float64(k*i%fftSize)/fftSize))
			}
			if want := real(sum)*real(sum) + imag(sum)*imag(sum); math.Abs(p[k]-want) > 1e-9*(1+want) {
				t.Fatalf("bin %d: %v, want %v", k, p[k], want)
			}
		}
	}
}

// TestFramesAgainstDefinition computes a few frames from scratch.
func TestFramesAgainstDefinition(t *testing.T) {
	e, x := New(weights.Default()), noise(2, 4*SampleRate)
	got := e.NewStream().Push(x, nil)
	n := Frames(len(x))
	if len(got) != n*Bands {
		t.Fatalf("%d values, want %d frames", len(got), n)
	}
	mel := bank()
	var frame [fftSize]float64
	var f fft
	var p [half + 1]float64
	var mean [Bands]float64
	share, count, level, floor, weight := 1.0, 100.0, math.NaN(), math.NaN(), 0.0
	for k := range n {
		for i := range Window {
			frame[i] = float64(x[k*Hop+i]) * float64(float32(.5-.5*math.Cos(2*math.Pi*float64(i)/Window)))
		}
		f.power(&frame, &p)
		var x [Bands]float64
		total := 0.0
		for b := range Bands {
			for i, v := range p {
				x[b] += v * float64(mel[i*Bands+b])
			}
			total += x[b] / Bands
		}
		if k == 0 {
			level = math.Log(total) + 4
		}
		if share > .9 && math.Log(total)+4 < level-2 {
			level = math.Log(total) + 4
		}
		if d := math.Log(total) - level; d > 0 {
			level += .1 * d
		} else {
			level += .0005 * weight * d
		}
		sum := 0.0
		for b := range Bands {
			x[b] = math.Log(x[b] + 1e-6*math.Exp(level))
			sum += x[b] / Bands
		}
		if k == 0 {
			floor = sum
		} else if sum < floor {
			floor += .2 * (sum - floor)
		} else {
			floor += .002
		}
		weight = 0.005
		switch {
		case sum < math.Log(1e-6)+level+.5:
			weight = 0
		case sum > floor+1:
			weight = 1
		}
		count += weight
		share *= 1 - weight/count
		for b, v := range x {
			mean[b] += (v - mean[b]) * weight / count
			want := v - mean[b] - share*(e.prior[b]+level)
			if math.Abs(float64(got[k*Bands+b])-want) > 1e-5 {
				t.Fatalf("frame %d band %d: %v, want %v", k, b, got[k*Bands+b], want)
			}
		}
	}
}

// What a stream begins with does not hide the speech that follows it.
func TestLoudBeginning(t *testing.T) {
	e, speech := New(weights.Default()), talk(10, 20)
	background := noise(3, SampleRate)
	for i := range background {
		background[i] *= 1e-4
	}
	quiet := append(slices.Clone(background), speech...)
	for i := range quiet {
		quiet[i] *= 0.02
	}
	want := e.NewStream().Push(quiet, nil)
	for _, seconds := range []float64{0.02, 0.5} {
		loud := slices.Clone(quiet)
		for i := range int(seconds * SampleRate) {
			loud[i] += float32(0.9 * math.Sin(2*math.Pi*500/SampleRate*float64(i)))
		}
		got := e.NewStream().Push(loud, nil)
		var difference, size float64
		for i := Bands * Frames(2*SampleRate); i < len(got); i++ {
			difference += math.Abs(float64(got[i] - want[i]))
			size += math.Abs(float64(want[i]))
		}
		if difference > 0.2*size {
			t.Errorf("after %v s: the frames differ by %.2f of their size", seconds, difference/size)
		}
	}
}

// The gain of the recording does not change the frames.
func TestGainDoesNotMatter(t *testing.T) {
	e, x := New(weights.Default()), append(make([]float32, SampleRate/2), talk(10, 20)...)
	want := e.NewStream().Push(x, nil)
	for _, db := range []float64{-60, -40, -20, 10, 20} {
		gain, loud := float32(math.Pow(10, db/20)), make([]float32, len(x))
		for i, v := range x {
			loud[i] = gain * v
		}
		worst := 0.0
		for i, v := range e.NewStream().Push(loud, nil) {
			worst = max(worst, math.Abs(float64(v-want[i])))
		}
		if worst > 1e-4 {
			t.Errorf("%v dB: frames differ by %.2g", db, worst)
		}
	}
}

func TestChunkingDoesNotMatter(t *testing.T) {
	e, x := New(weights.Default()), noise(3, 2*SampleRate+123)
	want := e.NewStream().Push(x, nil)
	r := rand.New(rand.NewPCG(4, 1))
	for _, most := range []int{1, 7, 160, 399, 1600, 5000} {
		s := e.NewStream()
		var got []float32
		for at := 0; at < len(x); {
			n := min(1+r.IntN(most), len(x)-at)
			got = s.Push(x[at:at+n], got)
			at += n
		}
		if !slices.Equal(got, want) {
			t.Fatalf("pieces of up to %d samples give other frames", most)
		}
	}
}

// TestNoNumberCanEnter: samples that are not finite count as silence, and those beyond maxSample as that.
func TestNoNumberCanEnter(t *testing.T) {
	e, x, y := New(weights.Default()), noise(5, SampleRate), noise(5, SampleRate)
	for i, v := range [][2]float64{{math.NaN(), 0}, {math.Inf(1), 0}, {math.Inf(-1), 0}, {math.MaxFloat32, maxSample}, {-math.MaxFloat32, -maxSample}} {
		for k := range 300 {
			x[1000*i+k], y[1000*i+k] = float32(v[0]), float32(v[1])
		}
	}
	silence := make([]float32, 20*SampleRate)
	got, want := e.NewStream().Push(append(x, silence...), nil), e.NewStream().Push(append(y, silence...), nil)
	if !slices.Equal(got, want) || slices.ContainsFunc(got, func(v float32) bool { return !(v > -60 && v < 60) }) {
		t.Error("the frames are others, or not of a plausible size")
	}
}

// talk is noise with the rhythm of syllables, and pauses.
func talk(seed uint64, seconds int) []float32 {
	x := noise(seed, seconds*SampleRate)
	for i := range x {
		at := float64(i) / SampleRate
		x[i] *= float32(0.01 + max(0, math.Sin(2*math.Pi*4*at))*max(0, math.Sin(2*math.Pi*0.3*at)+0.8))
	}
	return x
}

// Who is silent for ten minutes, or leaves the room to its hum, sounds the same
// afterwards, or nearly.
func TestSilenceHardlyShiftsTheMean(t *testing.T) {
	e := New(weights.Default())
	speech := talk(5, 60)
	mean := func(pause []float32) [Bands]float64 {
		s := e.NewStream()
		s.Push(speech, nil)
		for range 600 {
			s.Push(pause, nil)
		}
		return s.channel.Mean
	}
	want := mean(nil)
	hum := make([]float32, SampleRate)
	r := rand.New(rand.NewPCG(6, 1))
	for i := range hum {
		hum[i] = float32(1e-3 * (r.NormFloat64() + math.Sin(2*math.Pi*100*float64(i)/SampleRate)))
	}
	for _, x := range []struct {
		name  string
		pause []float32
		most  float64
	}{{"no signal", make([]float32, SampleRate), 0.01}, {"a hum", hum, 1}} {
		worst := 0.0
		for b, v := range mean(x.pause) {
			worst = max(worst, math.Abs(v-want[b]))
		}
		t.Logf("%s for ten minutes shifts the mean by %.2g", x.name, worst)
		if worst > x.most {
			t.Errorf("%s for ten minutes shifts the mean by %.2g, more than %v", x.name, worst, x.most)
		}
	}
}
