package session

import (
	"fmt"

	"hubbub/capture"
	"hubbub/capture/audiofile"
	"hubbub/cmd/hubbub/internal/voices"
	"hubbub/protocol"
	"hubbub/protocol/export"
	"hubbub/protocol/hint"
)

// voiceAudio is how much audio is kept to learn voices from, in seconds: 19 MB.
const voiceAudio = 600

// voiceMemory is the display.VoiceMemory of a live session: it keeps the newest audio. A
// nil *voiceMemory keeps none.
type voiceMemory struct {
	*voices.Learner
	live   *Live
	recent *audiofile.Recent
}

func (v *voiceMemory) audio(c capture.Chunk) {
	if v != nil {
		v.recent.Add(c.Seq*capture.ChunkSamples, c.Samples[:c.Valid])
	}
}

// Remember learns from the newest audio in which only the speaker talks.
func (v *voiceMemory) Remember(label string) (string, error) {
	annotations, _ := v.live.Annotations.Load()
	root, name := annotations.Root(label), annotations.Name(label)
	from, turns := float64(v.recent.Start())/capture.SampleRate, []protocol.Turn{}
	for _, t := range turnsSoFar(v.live.state()) {
		if t.Start = max(t.Start, from); t.End > t.Start {
			turns = append(turns, t)
		}
	}
	doc := export.New(export.Info{}, turns, annotations)
	for i, p := range doc.Speakers {
		if p.Label != root {
			continue
		}
		var samples []float32
		for _, s := range doc.Alone(i, voices.MaxSeconds) {
			_, span := v.recent.Span(int64(s.Start*capture.SampleRate), int64(s.End*capture.SampleRate))
			samples = append(samples, span...)
		}
		return v.Learn(root, name, samples[:min(len(samples), voices.MaxSeconds*capture.SampleRate)])
	}
	return "", hint.Add(fmt.Errorf("no voiceprint of %s: nothing was said in the last %d minutes", name, voiceAudio/60), "Try again when more was said.")
}

// Correct applies the present names to what was learnt.
func (v *voiceMemory) Correct() (string, error) {
	annotations, _ := v.live.Annotations.Load()
	return v.Learner.Correct(annotations)
}
