package engine

import (
	"strconv"
	"testing"

	"hubbub/localserver/engine/enginetest"
	"hubbub/localserver/engine/voiceprint"
)

// BenchmarkRecognise processes the demo, which has four people, with nobody and
// with 50 people enrolled, none of whom is recognised: a second of audio each.
func BenchmarkRecognise(b *testing.B) {
	x := enginetest.Demo(b)
	v, err := voiceprint.Make(x[int(0.9*SampleRate):int(5.84*SampleRate)])
	if err != nil {
		b.Fatal(err)
	}
	var people []voiceprint.Person // one person 50 times: none of them is likely enough
	for i := range 50 {
		people = append(people, voiceprint.Person{Label: strconv.Itoa(i), Voiceprint: v})
	}
	for _, enrolled := range []int{0, len(people)} {
		b.Run(strconv.Itoa(enrolled), func(b *testing.B) {
			e, err := New(Config{})
			if err != nil {
				b.Fatal(err)
			}
			e.Recognise(people[:enrolled], voiceprint.Matching{Threshold: voiceprint.DefaultThreshold})
			var events []Event
			for i := range b.N {
				at := i * SampleRate % (len(x) - SampleRate)
				events = e.Push(x[at:at+SampleRate], events[:0])
			}
		})
	}
}
