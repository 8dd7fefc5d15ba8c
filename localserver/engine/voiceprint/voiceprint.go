// Package voiceprint makes voiceprints from speech, reads and writes them, and
// matches the speakers of a session with them.
//
// A voiceprint is the mean embeddings of up to half a minute of a person's speech:
// as it was recorded, and as through a telephone line and from across a room. It
// is valid for the weights that made it: another network gives other embeddings.
package voiceprint

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/weights"
)

const (
	// MaxText is the maximum length of a written voiceprint, in characters.
	MaxText = 20_000

	// magic is what a written voiceprint begins with: the format and its version.
	magic = magicName + "2:"
	// magicName is the magic without the version. Version 1 had the embeddings of single
	// segments in one recording condition.
	magicName = "hubbub-voiceprint-"
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
	embeddings [conditions]clustering.Embedding // of the same speech in each recording condition
	projected  [conditions]clustering.Embedding // the projections of these
	duration   float64
}

func newVoiceprint(embeddings [conditions]clustering.Embedding, seconds float64) Voiceprint {
	v := Voiceprint{embeddings: embeddings, duration: seconds}
	for k := range embeddings {
		v.projected[k] = project(&embeddings[k])
	}
	return v
}

// Seconds is the length of the speech behind the voiceprint.
func (v Voiceprint) Seconds() float64 { return v.duration }

// Embeddings are those for a cohort: as recorded, and as from across a room.
func (v *Voiceprint) Embeddings() (asRecorded, inFarField clustering.Embedding) {
	return v.embeddings[recorded], v.embeddings[farField]
}

// String writes the voiceprint: the magic, the version of the weights, a colon,
// and in unpadded URL-safe base64 a clustering.TimedEmbedding for each recording condition
// and a CRC-32 (Castagnoli) of everything before, little-endian.
func (v Voiceprint) String() string {
	head := magic + version() + ":"
	var body []byte
	for k := range v.embeddings {
		s := clustering.TimedEmbedding{Embedding: v.embeddings[k], Duration: v.duration}
		body = s.Append(body)
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
	if sum != binary.LittleEndian.Uint32(raw[len(body):]) || len(body) != conditions*clustering.TimedEmbeddingBytes {
		return v, ErrInvalid
	}
	var embeddings [conditions]clustering.Embedding
	duration := 0.0
	for k := range embeddings {
		e, ok := clustering.ParseTimedEmbedding(body[k*clustering.TimedEmbeddingBytes:])
		if !ok || k > 0 && e.Duration != duration {
			return v, ErrInvalid
		}
		embeddings[k], duration = e.Embedding, e.Duration
	}
	if duration <= 0 || duration > 2*MaxSeconds {
		return v, ErrInvalid
	}
	return newVoiceprint(embeddings, duration), nil
}

// Version is the version of the weights that a written voiceprint was made with, or an
// ErrInvalid. One of another format, earlier or later, has another version, whatever its
// weights.
func Version(text string) (string, error) {
	head, rest, _ := strings.Cut(text, ":")
	format, ok := strings.CutPrefix(head, magicName)
	_, err := strconv.ParseUint(format, 10, 16)
	made, _, colon := strings.Cut(rest, ":")
	if !ok || err != nil || !colon || made == "" || len(made) > 64 || len(text) > MaxText {
		return "", ErrInvalid
	}
	for _, r := range made {
		if r <= ' ' || r > '~' {
			return "", ErrInvalid
		}
	}
	if head+":" != magic {
		made = "format-" + format + "-" + made
	}
	return made, nil
}

// Current reports whether a written voiceprint was made with the weights of this
// engine.
func Current(text string) bool {
	made, err := Version(text)
	return err == nil && made == version()
}

func version() string { return weights.Default().Version() }
