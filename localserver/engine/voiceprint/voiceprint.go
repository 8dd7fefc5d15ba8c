// Package voiceprint makes voiceprints from speech, reads and writes them, and
// matches the speakers of a session with them.
//
// A voiceprint is the embeddings of up to half a minute of a person's speech. It
// is valid for the weights that made it: another network gives other embeddings.
package voiceprint

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/inference"
)

const (
	// MaxText is the maximum length of a written voiceprint, in characters.
	MaxText = 20_000

	// magic is what a written voiceprint begins with: the format and its version.
	magic = "hubbub-voiceprint-1:"
	// maxSpeech bounds the segments of a voiceprint, so that it fits MaxText.
	maxSpeech = 50
)

// The errors of Parse.
var (
	// ErrInvalid: not a voiceprint, truncated or changed.
	ErrInvalid = errors.New("not a voiceprint, or it is damaged")
	// ErrOutdated: made by an engine with other weights.
	ErrOutdated = errors.New("the voiceprint was made by another engine version")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Voiceprint is what is known of a person's voice.
type Voiceprint struct {
	speech   []clustering.Speech
	centroid clustering.Embedding
	duration float64
}

// newVoiceprint keeps at most maxSpeech segments, evenly spread.
func newVoiceprint(speech []clustering.Speech) Voiceprint {
	if n := len(speech); n > maxSpeech {
		kept := make([]clustering.Speech, 0, maxSpeech)
		for i := range maxSpeech {
			kept = append(kept, speech[i*n/maxSpeech])
		}
		speech = kept
	}
	v := Voiceprint{speech: speech}
	v.centroid, v.duration = clustering.Centroid(speech)
	return v
}

// Seconds is the length of the speech behind the voiceprint.
func (v Voiceprint) Seconds() float64 { return v.duration }

// Centroid is the mean of the embeddings, of length 1.
func (v Voiceprint) Centroid() clustering.Embedding { return v.centroid }

// First is the voiceprint of the first seconds of its speech, at least one segment.
func (v Voiceprint) First(seconds float64) Voiceprint {
	n, sum := 1, v.speech[0].Duration
	for ; n < len(v.speech) && sum < seconds; n++ {
		sum += v.speech[n].Duration
	}
	return newVoiceprint(v.speech[:n])
}

// Reduced is the voiceprint with one embedding only, the mean. It matches the same
// people and is shorter than 500 characters.
func (v Voiceprint) Reduced() Voiceprint {
	return newVoiceprint([]clustering.Speech{{Embedding: v.centroid, Duration: v.duration}})
}

// Join is the voiceprint of the speech of both.
func (v Voiceprint) Join(o Voiceprint) Voiceprint {
	return newVoiceprint(append(append([]clustering.Speech(nil), v.speech...), o.speech...))
}

// String writes the voiceprint: the magic, the version of the weights, a colon,
// and in unpadded URL-safe base64 its segments and a CRC-32 (Castagnoli) of
// everything before, little-endian.
func (v Voiceprint) String() string {
	head := magic + version() + ":"
	var body []byte
	for i := range v.speech {
		body = v.speech[i].Append(body)
	}
	sum := crc32.Update(crc32.Checksum([]byte(head), castagnoli), castagnoli, body)
	return head + base64.RawURLEncoding.EncodeToString(binary.LittleEndian.AppendUint32(body, sum))
}

// Parse reads a written voiceprint. The error is an ErrInvalid or an ErrOutdated.
func Parse(text string) (v Voiceprint, err error) {
	made, err := Version(text)
	if err != nil {
		return v, err
	}
	if made != version() {
		return v, fmt.Errorf("%w: its weights are %s, those of this engine %s", ErrOutdated, made, version())
	}
	head := magic + made + ":"
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text[len(head):])
	if err != nil || len(raw) <= 4 || strings.ContainsAny(text, "\r\n") { // which the decoder skips
		return v, ErrInvalid
	}
	body := raw[:len(raw)-4]
	sum := crc32.Update(crc32.Checksum([]byte(head), castagnoli), castagnoli, body)
	if sum != binary.LittleEndian.Uint32(raw[len(body):]) || len(body)%clustering.SpeechBytes != 0 || len(body)/clustering.SpeechBytes > maxSpeech {
		return v, ErrInvalid
	}
	var speech []clustering.Speech
	for ; len(body) > 0; body = body[clustering.SpeechBytes:] {
		s, ok := clustering.ParseSpeech(body)
		if !ok {
			return v, ErrInvalid
		}
		speech = append(speech, s)
	}
	if v = newVoiceprint(speech); v.duration <= 0 || v.duration > maxSpeech*10 {
		return Voiceprint{}, ErrInvalid
	}
	return v, nil
}

// Version is the version of the weights that a written voiceprint was made with,
// or an ErrInvalid.
func Version(text string) (string, error) {
	rest, ok := strings.CutPrefix(text, magic)
	made, _, colon := strings.Cut(rest, ":")
	if !ok || !colon || made == "" || len(made) > 64 || len(text) > MaxText {
		return "", ErrInvalid
	}
	for _, r := range made {
		if r <= ' ' || r > '~' {
			return "", ErrInvalid
		}
	}
	return made, nil
}

// Current reports whether a written voiceprint was made with the weights of this
// engine.
func Current(text string) bool {
	made, err := Version(text)
	return err == nil && made == version()
}

func version() string {
	v, err := inference.Version()
	if err != nil {
		return "damaged"
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == ':' {
			return '_'
		}
		return r
	}, v)
}
