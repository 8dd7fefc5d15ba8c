package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"hubbub/localserver/engine/features"
)

// A snapshot is what an engine knows of its speakers:
//
//	magic     8 bytes, with the version of the format
//	weights   1 byte of length, then the version of the weights
//	labels    1 byte: how many; then for each speaker its label, or noLabel
//	matches   for each speaker 2 bytes of length, then the label of its match
//	channel   a features.Channel
//	speakers  a snapshot of the clusterer
//	checksum  CRC-32 (Castagnoli) of everything before, 4 bytes
//
// It holds voiceprints, which are personal data.
const (
	snapshotMagic = "hubbubv4"
	noLabel       = 0xff
)

// ErrSnapshot is the error for a snapshot that the engine cannot continue with:
// it is damaged, of other weights, or of more speakers than the Config allows.
var ErrSnapshot = errors.New("the snapshot of speakers cannot be used")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSnapshot appends to out a snapshot of the speakers and their labels. An
// engine for a later stream that restores it gives the same people the same
// labels. It may be called at any time between two calls of Push, and after
// Flush.
func (e *Engine) AppendSnapshot(out []byte) []byte {
	from := len(out)
	out = append(out, snapshotMagic...)
	version := WeightsVersion()
	out = append(out, byte(len(version)))
	out = append(out, version...)
	out = e.turns.appendLabels(out)
	for k := range MaxSpeakers {
		name := e.source.match(k)
		out = binary.LittleEndian.AppendUint16(out, uint16(len(name)))
		out = append(out, name...)
	}
	out = e.source.appendSnapshot(out)
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out[from:], castagnoli))
}

// RestoreSnapshot continues with the speakers of an earlier engine. It must come
// before the first Push. An error is an ErrSnapshot; the engine is then unchanged.
func (e *Engine) RestoreSnapshot(snapshot []byte) error {
	if e.received > 0 || e.filled > 0 {
		return fmt.Errorf("%w: samples have been pushed already", ErrSnapshot)
	}
	n := len(snapshot) - 4
	if n < len(snapshotMagic)+2 || string(snapshot[:len(snapshotMagic)]) != snapshotMagic ||
		binary.LittleEndian.Uint32(snapshot[n:]) != crc32.Checksum(snapshot[:n], castagnoli) {
		return fmt.Errorf("%w: it is damaged", ErrSnapshot)
	}
	body := snapshot[len(snapshotMagic):n]
	length := int(body[0])
	if len(body) < 1+length || string(body[1:1+length]) != WeightsVersion() {
		return fmt.Errorf("%w: it is of other weights", ErrSnapshot)
	}
	labels, rest, err := readLabels(body[1+length:])
	var matches [MaxSpeakers]string
	if err == nil {
		matches, rest, err = readMatches(rest)
	}
	if err == nil {
		err = e.source.restoreSnapshot(rest, matches)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	e.turns.label, e.turns.labelled, e.turns.labels = labels.label, labels.labelled, labels.labels
	return nil
}

// adaptive is a WindowSource that adapts to the channel. An inference.Stream does,
// stored windows do not.
type adaptive interface {
	Channel() features.Channel
	Resume(features.Channel)
}

func (p *pipeline) appendSnapshot(out []byte) []byte {
	if w, ok := p.windows.(adaptive); ok {
		out = w.Channel().Append(out)
	}
	return p.clusterer.AppendSnapshot(out)
}

func (p *pipeline) restoreSnapshot(snapshot []byte, matches [MaxSpeakers]string) error {
	w, ok := p.windows.(adaptive)
	if !ok {
		return p.clusterer.Restore(snapshot)
	}
	channel, speakers, err := features.ParseChannel(snapshot)
	if err != nil {
		return err
	}
	if err := p.clusterer.Restore(speakers); err != nil {
		return err
	}
	w.Resume(channel)
	p.matcher.restore(matches)
	return nil
}

// appendLabels appends the labels of the speakers.
func (t *turns) appendLabels(out []byte) []byte {
	out = append(out, byte(t.labels))
	for k := range t.label {
		if t.labelled>>k&1 != 0 {
			out = append(out, byte(t.label[k]))
		} else {
			out = append(out, noLabel)
		}
	}
	return out
}

// readLabels reads what appendLabels wrote, into the label fields of a turns.
func readLabels(raw []byte) (t turns, rest []byte, err error) {
	if len(raw) < 1+MaxSpeakers {
		return t, nil, errors.New("it is too short")
	}
	t.labels = min(int(raw[0]), MaxSpeakers+1)
	var seen speakerSet
	for k, label := range raw[1 : 1+MaxSpeakers] {
		if label == noLabel {
			continue
		}
		if int(label) >= min(t.labels, MaxSpeakers) || seen>>label&1 != 0 {
			return t, nil, errors.New("its labels are inconsistent")
		}
		seen |= 1 << label
		t.label[k] = int(label)
		t.labelled |= 1 << k
	}
	if t.labels > MaxSpeakers || seen != 1<<t.labels-1 {
		return t, nil, errors.New("its labels are inconsistent")
	}
	return t, raw[1+MaxSpeakers:], nil
}

// readMatches reads the labels of the speakers' matches.
func readMatches(raw []byte) (matches [MaxSpeakers]string, rest []byte, err error) {
	for k := range matches {
		if len(raw) < 2 || len(raw)-2 < int(binary.LittleEndian.Uint16(raw)) {
			return matches, nil, errors.New("it is too short")
		}
		n := int(binary.LittleEndian.Uint16(raw))
		matches[k], raw = string(raw[2:2+n]), raw[2+n:]
	}
	return matches, raw, nil
}
