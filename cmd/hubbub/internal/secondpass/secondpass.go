// Package secondpass diarizes a file with the context of all of it (Run), gives the
// turns names and words, and compares them with those of a live session (Relabel,
// Changes).
package secondpass

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hubbub/capture"
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/offline"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// maxLength is the longest recording.
const maxLength = 24 * time.Hour

// Result is an audio file after the second pass.
type Result struct {
	Turns     []protocol.Turn
	Exclusive []protocol.Turn // only the most likely speaker where several talk at once
	Speakers  int
	Info      capture.Info
	Length    time.Duration
	Notices   []string       // that arose while the file was read
	Tracks    map[string]int // the track of a label, from 0 on

	embeddings []clustering.TimedEmbedding // by the number of the speaker
}

// Run diarizes a file with the context of all of it. An error is that of the file,
// with a hint, or that of ctx.
func Run(ctx context.Context, file string, selected capture.Channels, o offline.Options, p *Progress) (*Result, error) {
	source, err := capture.OpenRecording(ctx, file, selected, capture.DecoderStall)
	if err != nil {
		p.skip()
		return nil, err
	}
	result := &Result{Info: source.Info()}
	if result.Info.Duration > maxLength {
		p.skip()
		return nil, errors.Join(tooLong(file), source.Close())
	}
	// Without a number of speakers, each channel is one person.
	person := selected == capture.Each && o == offline.Options{}
	if person {
		o.Speakers = 1
	}
	passes := make([]*offline.Recording, result.Info.Tracks)
	for i := range passes {
		if passes[i], err = offline.New(o); err != nil {
			return nil, errors.Join(err, source.Close())
		}
	}
	result.Length, err = read(ctx, source, passes, p)
	if result.Length > maxLength {
		err = tooLong(file)
	}
	if err != nil {
		p.add(&p.compared, result.Length) // nothing of this file is left to do
		return nil, err
	}
	results, err := finish(ctx, passes, result.Length, p)
	if err != nil {
		return nil, err
	}
	joined, tracks := joinTracks(results, person)
	result.Turns, result.Exclusive = labelled(joined.Turns), labelled(joined.Exclusive)
	result.Speakers, result.embeddings = joined.Speakers, joined.Embeddings
	result.Notices, result.Tracks = source.Notices(), tracks
	return result, nil
}

func tooLong(file string) error {
	return hint.Add(fmt.Errorf("%s is longer than %.0f h", file, maxLength.Hours()), "Cut it into parts.")
}

// read passes each track of a source to its pass, and stops when there is too much. It closes the source.
func read(ctx context.Context, source capture.Source, passes []*offline.Recording, p *Progress) (length time.Duration, err error) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	reader := capture.NewChunkReader(reading, source, capture.Fast)
	stated := cmp.Or(source.Info().Duration, source.Info().Estimate)
	p.begin(stated)
	for c := range decoded(reading, reader) {
		for i, pass := range passes {
			first := i * capture.ChunkSamples
			pass.Push(c.Tracks[first : first+c.Valid])
		}
		p.add(&p.processed, capture.ChunkDuration)
		if length += capture.ChunkDuration; length > maxLength {
			break
		}
	}
	p.add(&p.total, length-stated) // all that there is was read
	return length, errors.Join(ctx.Err(), reader.Err())
}

// finish compares the speakers of each track of a recording.
func finish(ctx context.Context, passes []*offline.Recording, length time.Duration, p *Progress) (results []*offline.Result, err error) {
	results = make([]*offline.Result, len(passes))
	compared := time.Duration(0)
	for i, pass := range passes {
		pass.Progress = func(share float64) {
			now := time.Duration((float64(i) + share) / float64(len(passes)) * float64(length))
			p.add(&p.compared, now-compared)
			compared = now
		}
		if results[i], err = pass.Finish(ctx); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// decoded receives the chunks of a reader until the end of ctx. The next one is decoded while one is processed.
func decoded(ctx context.Context, reader *capture.ChunkReader) <-chan capture.Chunk {
	chunks := make(chan capture.Chunk)
	go func() {
		defer close(chunks)
		for c := range reader.Chunks() {
			select {
			case chunks <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	return chunks
}

// joinTracks is the result of a recording from those of its tracks. A person has the
// number of the track; other speakers are numbered in order of first speech. of is the
// track of a label, unless there is only one.
func joinTracks(tracks []*offline.Result, person bool) (all *offline.Result, of map[string]int) {
	if len(tracks) == 1 {
		return tracks[0], nil
	}
	const apart = offline.MaxSpeakers
	all, of = &offline.Result{}, map[string]int{}
	for i, r := range tracks {
		all.Speakers += r.Speakers
		for _, turns := range [][]offline.Turn{r.Turns, r.Exclusive} {
			for k := range turns {
				turns[k].Speaker += i * apart
			}
		}
		all.Turns, all.Exclusive = append(all.Turns, r.Turns...), append(all.Exclusive, r.Exclusive...)
	}
	byStart := func(a, b offline.Turn) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Speaker, b.Speaker))
	}
	slices.SortFunc(all.Turns, byStart)
	slices.SortFunc(all.Exclusive, byStart)
	numbers := map[int]int{}
	for _, turns := range [][]offline.Turn{all.Turns, all.Exclusive} {
		for i, t := range turns {
			if _, ok := numbers[t.Speaker]; !ok {
				numbers[t.Speaker] = len(numbers)
				if person {
					numbers[t.Speaker] = t.Speaker / apart
				}
			}
			turns[i].Speaker = numbers[t.Speaker]
		}
	}
	for speaker, k := range numbers {
		for len(all.Embeddings) <= k {
			all.Embeddings = append(all.Embeddings, clustering.TimedEmbedding{})
		}
		of[protocol.SpeakerLabel(k)] = speaker / apart
		if track := tracks[speaker/apart]; speaker%apart < len(track.Embeddings) {
			all.Embeddings[k] = track.Embeddings[speaker%apart]
		}
	}
	return all, of
}

// labelled are turns under labels, in milliseconds.
func labelled(list []offline.Turn) []protocol.Turn {
	var turns []protocol.Turn
	for _, t := range list {
		turns = append(turns, protocol.Turn{Speaker: protocol.SpeakerLabel(t.Speaker), Start: protocol.Round1ms(t.Start), End: protocol.Round1ms(t.End)})
	}
	return turns
}

// Recognise gives all turns of a speaker the name of the person whose voice it is.
func (r *Result) Recognise(people []voiceprint.Person, m voiceprint.Matching) {
	confidences := make([][]float64, len(r.embeddings))
	for k, v := range r.embeddings {
		confidences[k] = voiceprint.Confidences(&v.Embedding, v.Duration, people, nil)
	}
	names := map[string]string{}
	for k, i := range voiceprint.Assign(confidences, m) {
		if i >= 0 {
			names[protocol.SpeakerLabel(k)] = people[i].Label
		}
	}
	for _, turns := range [][]protocol.Turn{r.Turns, r.Exclusive} {
		for i := range turns {
			turns[i].Match = names[turns[i].Speaker]
		}
	}
}
