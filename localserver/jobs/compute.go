package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"hubbub/capture"
	"hubbub/localserver/engine/offline"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/recovered"
)

const (
	// maxLength is the longest audio of a job.
	maxLength = 24 * time.Hour
	// busyPause is how long a job pauses while live streams are late.
	busyPause = 50 * time.Millisecond
	// pushSamples is the most audio that is processed before the next check for late streams.
	pushSamples = offline.SampleRate / 2
	// readShare is the part of reading in the time of a diarization; finding the turns
	// takes the rest.
	readShare = 0.85
)

// compute does the work of a job and returns its output. A *failure is its result
// as well; other errors are those of the store or the machine.
func (a *attempt) compute() ([]byte, error) {
	var request protocol.JobRequest
	if err := json.Unmarshal(a.delivery.Job.Request, &request); err != nil {
		return nil, failed("The request cannot be read.")
	}
	folder, err := os.MkdirTemp(a.Dir, "hubbub-job-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path, err := a.fetch(folder, request.URL)
	if err != nil {
		return nil, err
	}
	var output any
	atLowPriority(func() {
		err = recovered.Guard(func() (err error) {
			output, err = a.process(path, request)
			return err
		})
	})
	if err != nil {
		return nil, a.audioError(path, err)
	}
	return protocol.MarshalLine(output)
}

// audioError makes an error about the audio the result of the job. Its text names
// no file of the server. One of the system, such as too many open files, is not about the audio.
func (a *attempt) audioError(path string, err error) error {
	_, ofSystem := errors.AsType[syscall.Errno](err)
	if _, fails := errors.AsType[*failure](err); fails || ofSystem || recovered.Caught(err) || a.ctx.Err() != nil {
		return err
	}
	return failed("%s.", aboutAudio(path, err.Error()))
}

// aboutAudio is a text about the audio in a file, which it does not name.
func aboutAudio(path, text string) string {
	text = strings.ReplaceAll(text, path, "the audio")
	return strings.ToUpper(text[:1]) + text[1:]
}

// process computes the output of a job from its audio.
func (a *attempt) process(path string, request protocol.JobRequest) (any, error) {
	if a.job.Kind == protocol.JobVoiceprint {
		return a.voiceprint(path)
	}
	pass, err := offline.New(offline.Options{Speakers: request.NumSpeakers, MinSpeakers: request.MinSpeakers, MaxSpeakers: request.MaxSpeakers})
	if err != nil {
		return nil, err
	}
	part := 1.0
	if request.Transcription {
		part = 0.5
	}
	pass.Progress = func(share float64) { a.progress(part * (readShare + (1-readShare)*share)) }
	err = a.read(path, maxLength, 0, part*readShare, func(_ int64, samples []float32) error {
		pass.Push(samples)
		return nil
	})
	if err != nil {
		return nil, err
	}
	result, err := pass.Finish(a.ctx)
	if err != nil {
		return nil, err
	}
	out := diarization(result, request)
	for _, n := range a.notices {
		warn(&out, "%s.", aboutAudio(path, n))
	}
	if a.job.Kind == protocol.JobIdentify {
		return identify(result, request, out)
	}
	if request.Transcription {
		err = a.transcribe(path, &out)
	}
	return out, err
}

// voiceprint makes the voiceprint of the only speaker.
func (a *attempt) voiceprint(path string) (any, error) {
	maker := voiceprint.NewMaker()
	err := a.read(path, voiceprint.MaxSeconds*time.Second, 0, 1, func(_ int64, samples []float32) error {
		maker.Push(samples)
		return nil
	})
	if err != nil {
		return nil, err
	}
	made, err := maker.Voiceprint()
	if err != nil {
		return nil, err
	}
	return protocol.VoiceprintOutput{Voiceprint: made.String()}, nil
}

// read passes on the audio of a file, at most limit of it, with its position in
// samples. The progress of the job goes from one share of the work to another.
func (a *attempt) read(path string, limit time.Duration, from, to float64, push func(int64, []float32) error) error {
	source, err := capture.OpenRecording(a.ctx, path, capture.Mix, a.decoderStall)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	var samples int64
	duration := source.Info().Duration
	if duration > limit+time.Second {
		return tooLong(limit)
	}
	duration = cmp.Or(duration, source.Info().Estimate)
	buffer, last := make([]float32, pushSamples), false
	for !last {
		n, err := source.Read(a.ctx, buffer)
		if last = errors.Is(err, io.EOF); err != nil && !last {
			return err
		}
		if time.Duration(samples+int64(n))*time.Second/offline.SampleRate > limit {
			return tooLong(limit)
		}
		if err := push(samples, buffer[:n]); err != nil {
			return err
		}
		samples += int64(n)
		if duration > 0 {
			a.progress(from + (to-from)*min(float64(samples)/(duration.Seconds()*offline.SampleRate), 1))
		}
		for a.Busy() && a.ctx.Err() == nil {
			_ = protocol.Sleep(a.ctx, busyPause)
		}
	}
	if a.notices = source.Notices(); source.Info().Notice != "" {
		a.notices = append(a.notices, source.Info().Notice)
	}
	return context.Cause(a.ctx)
}

// progress notes how much of the work is done; the next renewal of the claim stores it.
func (a *attempt) progress(share float64) { a.thousandths.Store(int64(share * 1000)) }

func tooLong(limit time.Duration) error {
	if limit < time.Hour {
		return failed("The audio is longer than %.0f s.", limit.Seconds())
	}
	return failed("The audio is longer than %.0f h.", limit.Hours())
}

// percent is a probability as a whole number, 0 to 100, rounded down: what is below a threshold
// is not shown as if it had reached it.
func percent(p float64) int { return int(min(max(p, 0), 1)*100 + 1e-9) }

// turns are turns for the output, with the confidences of all speakers if asked.
func turns(result *offline.Result, list []offline.Turn, confidence bool) []protocol.JobTurn {
	out := make([]protocol.JobTurn, 0, len(list)) // an array, not null
	for _, t := range list {
		turn := protocol.JobTurn{Speaker: protocol.SpeakerLabel(t.Speaker), Start: protocol.Seconds(t.Start), End: protocol.Seconds(t.End)}
		if confidence {
			turn.Confidence = map[string]int{}
			for k, p := range result.Speaking(t.Start, t.End) {
				turn.Confidence[protocol.SpeakerLabel(k)] = percent(p)
			}
		}
		out = append(out, turn)
	}
	return out
}

// diarization is the output of a diarization.
func diarization(result *offline.Result, request protocol.JobRequest) protocol.Diarization {
	out := protocol.Diarization{Turns: turns(result, result.Turns, request.TurnLevelConfidence)}
	switch want := max(request.NumSpeakers, request.MinSpeakers); {
	case result.Speakers < want && result.Speakers == 0:
		warn(&out, "No speech was found.")
	case result.Speakers < want:
		warn(&out, "Only %d of %d speakers could be told apart.", result.Speakers, want)
	}
	if request.Exclusive {
		out.Exclusive = turns(result, result.Exclusive, request.TurnLevelConfidence)
	}
	if request.Confidence {
		scores := result.Confidence()
		out.Confidence = &protocol.FrameConfidence{Score: make([]int, len(scores)), Resolution: offline.FrameSeconds}
		for i, p := range scores {
			out.Confidence.Score[i] = percent(p)
		}
	}
	return out
}

// identify is the output of an identification.
func identify(result *offline.Result, request protocol.JobRequest, out protocol.Diarization) (any, error) {
	people, matching, err := People(request.Enrolment)
	if err != nil {
		return nil, err
	}
	matches, voices := match(result, people, matching)
	identified := protocol.Identification{Diarization: out, Turns: make([]protocol.IdentifiedTurn, 0, len(out.Turns)), Voices: voices}
	for _, t := range out.Turns {
		turn := protocol.IdentifiedTurn{Speaker: t.Speaker, Start: t.Start, End: t.End, Diarization: t.Speaker, Match: matches[t.Speaker]}
		if turn.Match != nil {
			turn.Speaker = *turn.Match
		}
		identified.Turns = append(identified.Turns, turn)
	}
	return identified, nil
}

// match finds the people among the speakers.
func match(result *offline.Result, people []voiceprint.Person, how voiceprint.Matching) (map[string]*string, []protocol.IdentifiedSpeaker) {
	voices := make([]protocol.IdentifiedSpeaker, len(result.Embeddings))
	confidences := make([][]float64, len(voices))
	for k, v := range result.Embeddings {
		confidences[k] = voiceprint.Confidences(&v.Embedding, v.Duration, people, nil)
		voices[k] = protocol.IdentifiedSpeaker{Speaker: protocol.SpeakerLabel(k), Confidence: map[string]int{}}
		for i, p := range confidences[k] {
			voices[k].Confidence[people[i].Label] = percent(p)
		}
	}
	matches := map[string]*string{}
	for k, i := range voiceprint.Assign(confidences, how) {
		if i >= 0 {
			voices[k].Match = &people[i].Label
			matches[voices[k].Speaker] = voices[k].Match
		}
	}
	return matches, voices
}
