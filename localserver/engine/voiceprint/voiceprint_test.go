package voiceprint

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hubbub/localserver/engine/enginetest"
	"hubbub/protocol/testkit"
)

const rate = 16000

func cut(x []float32, from, to float64) []float32 { return x[int(from*rate):int(to*rate)] }

func made(t *testing.T, samples []float32) Voiceprint {
	t.Helper()
	return testkit.Must(Make(samples))(t)
}

// TestPeopleAreToldApart enrols three people of the demo and compares them with
// other speech of theirs.
func TestPeopleAreToldApart(t *testing.T) {
	if testing.Short() {
		t.Skip("2 s of CPU")
	}
	x := enginetest.Demo(t)
	people := []Person{
		{"slt", made(t, cut(x, 0.9, 5.84))},
		{"rms", made(t, cut(x, 7.24, 12.99))},
		{"kal", made(t, cut(x, 49.02, 55.67))},
	}
	later := map[string]Voiceprint{
		"slt": made(t, cut(x, 62.5, 68.2)), "rms": made(t, cut(x, 40.28, 44.8)), "kal": made(t, cut(x, 13.6, 17.86)),
		"": made(t, cut(x, 68.6, 72.83)), // a fourth person
	}
	for want, v := range later {
		c := Confidences(&v.embeddings[0], v.duration, people, nil)
		got := ""
		if best, _ := Best(c, DefaultThreshold, nil); best >= 0 {
			got = people[best].Label
		}
		if got != want {
			t.Errorf("speech of %q matches %q: %.2f", want, got, c)
		}
	}
}

func TestUnfitAudioIsRefused(t *testing.T) {
	x := enginetest.Demo(t)
	r := rand.New(rand.NewPCG(1, 1))
	noise := make([]float32, 5*rate)
	for i := range noise {
		noise[i] = float32(0.1 * r.NormFloat64())
	}
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		samples []float32
		want    error
	}{
		"silence":            {make([]float32, 10*rate), ErrSilence},
		"nothing":            {nil, ErrSilence},
		"noise":              {noise, ErrNoSpeech},
		"music":              {music(), ErrNoSpeech},
		"one second":         {cut(x, 1, 2), ErrTooShort},
		"two people":         {cut(x, 0.9, 13), ErrTwoPeople},
		"more than 30 s":     {make([]float32, 31*rate), ErrTooLong},
		"nothing but no one": {[]float32{nan, nan}, ErrSilence},
	} {
		if _, err := Make(c.samples); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestTooShort: what is too short is said to be shorter than what is needed.
func TestTooShort(t *testing.T) {
	if err := tooShort(1.98); !errors.Is(err, ErrTooShort) || !strings.Contains(err.Error(), ": 1.9 s can be used, 2 s are needed") {
		t.Error(err)
	}
}

// music is ten seconds of tones that decay, with harmonics.
func music() []float32 {
	r := rand.New(rand.NewPCG(2, 1))
	x := make([]float32, 10*rate)
	for range 50 {
		hertz := 110 * math.Pow(2, float64(r.IntN(30))/12)
		for n, from := 0, r.IntN(len(x)); from+n < len(x) && n < rate; n++ {
			s := float64(n) / rate
			for h := 1.; h < 6; h++ {
				x[from+n] += float32(0.05 / h * math.Sin(2*math.Pi*hertz*h*s) * math.Exp(-4*s))
			}
		}
	}
	return x
}

func TestWrittenVoiceprints(t *testing.T) {
	x := enginetest.Demo(t)
	v := made(t, cut(x, 0.9, 5.84))
	text := v.String()
	if len(text) > MaxText || !Current(text) {
		t.Errorf("%d characters, current: %v", len(text), Current(text))
	}
	again, err := Parse(text)
	if err != nil || again.String() != text {
		t.Fatalf("%v; the same text: %v", err, err == nil && again.String() == text)
	}
	for k := range v.embeddings {
		if c := again.embeddings[k].Dot(&v.embeddings[k]); c < 0.9999 {
			t.Errorf("condition %d: cosine %g after reading", k, c)
		}
	}
	made := testkit.Must(Version(text))(t)
	foreign := strings.Replace(text, made, "0.1", 1)
	former := strings.Replace(text, magic, "hubbub-voiceprint-1:", 1)
	later := strings.Replace(text, magic, "hubbub-voiceprint-10:", 1)
	for name, text := range map[string]string{"of another engine": foreign, "of the former format": former, "of a later format": later} {
		if _, err := Parse(text); !errors.Is(err, ErrOutdated) || Current(text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := 0; i < len(text); i += 7 {
		changed := []byte(text)
		changed[i] ^= 1
		if _, err := Parse(string(changed)); !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrOutdated) {
			t.Fatalf("character %d changed: %v", i, err)
		}
		if _, err := Parse(text[:i]); !errors.Is(err, ErrInvalid) {
			t.Fatalf("cut to %d characters: %v", i, err)
		}
	}
	for _, bad := range []string{"", "hello", magic, magic + made + ":", "hubbub-voiceprint-:" + made + ":x", "hubbub-voiceprint-x:" + made + ":x", text + "A", text + "\n", strings.Repeat("x", MaxText+1)} {
		if _, err := Parse(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(magic + version() + ":AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Parse(text)
		if err == nil && v.String() != text {
			t.Errorf("%q is read and written as %q", text, v.String())
		}
	})
}

// TestAssign: the most certain pair comes first, a person has one speaker unless
// shared, and nobody below the threshold or less likely than a stranger.
func TestAssign(t *testing.T) {
	for _, c := range []struct {
		confidences [][]float64
		m           Matching
		want        []int
	}{
		{nil, Matching{}, []int{}},
		{[][]float64{{0.7, 0.2}, {0.9, 0.05}}, Matching{}, []int{1, 0}},
		{[][]float64{{0.7, 0.2}, {0.9, 0.05}}, Matching{Threshold: 0.5}, []int{-1, 0}},
		{[][]float64{{0.7, 0.2}, {0.9, 0.05}}, Matching{Shared: true}, []int{0, 0}},
		{[][]float64{{0.6, 0.39}, {0.1, 0.9}}, Matching{}, []int{0, 1}},
		{[][]float64{{0.79, 0.1}, {}}, Matching{Threshold: 0.8}, []int{-1, -1}},
		{[][]float64{{0.3, 0.2}}, Matching{}, []int{-1}},
	} {
		if got := Assign(c.confidences, c.m); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.confidences, got, c.want)
		}
	}
}
