package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"hubbub/localserver/engine/features"
)

// A snapshot of an engine's voices:
//
//	magic     8 bytes, with the version of the form
//	weights   1 byte of length, then the version of the weights
//	labels    1 byte: how many; then for each voice its label, or noLabel
//	channel   a features.Channel in its own form
//	voices    the clusterer's own form
//	checksum  CRC-32 (Castagnoli) of everything before, 4 bytes
//
// It holds how people sound: whoever keeps one keeps personal data.
const (
	snapshotMagic = "hubbubv3"
	noLabel       = 0xff
	// MaxSnapshotBytes bounds a snapshot: 8 voices and 600 pieces.
	MaxSnapshotBytes = 192 << 10
)

// ErrSnapshot is a snapshot that this engine cannot go on with: damaged, of
// other weights, or of more speakers than the Config allows.
var ErrSnapshot = errors.New("the snapshot of voices cannot be used")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// rememberer is a listener whose voices can be kept.
type rememberer interface {
	appendVoices(out []byte) []byte
	restoreVoices(snapshot []byte) error
}

func (n *neural) appendVoices(out []byte) []byte {
	if w, ok := n.windows.(adaptive); ok {
		out = w.Channel().Append(out)
	}
	return n.clusterer.AppendSnapshot(out)
}

func (n *neural) restoreVoices(snapshot []byte) error {
	w, ok := n.windows.(adaptive)
	if !ok {
		return n.clusterer.Restore(snapshot)
	}
	channel, voices, err := features.ParseChannel(snapshot)
	if err != nil {
		return err
	}
	if err := n.clusterer.Restore(voices); err != nil {
		return err
	}
	w.Resume(channel)
	return nil
}

// AppendVoices appends to out a snapshot of the voices that the engine knows,
// and their labels. An engine for a later stream that takes it with
// RestoreVoices gives the same people the same labels. It may be called at any
// time between two calls of Push, and after Flush.
func (e *Engine) AppendVoices(out []byte) []byte {
	from := len(out)
	out = append(out, snapshotMagic...)
	version := WeightsVersion()
	out = append(out, byte(len(version)))
	out = append(out, version...)
	out = e.turns.appendLabels(out)
	if l, ok := e.listener.(rememberer); ok {
		out = l.appendVoices(out)
	}
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out[from:], castagnoli))
}

// RestoreVoices makes the engine go on with the voices of an earlier one. It
// must come before the first Push. An error is an ErrSnapshot; the engine is
// then as it was, and knows nobody.
func (e *Engine) RestoreVoices(snapshot []byte) error {
	l, ok := e.listener.(rememberer)
	if !ok || e.heard > 0 || e.filled > 0 {
		return fmt.Errorf("%w: the engine has begun already", ErrSnapshot)
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
	if err == nil {
		err = l.restoreVoices(rest)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	e.turns.label, e.turns.labelled, e.turns.labels = labels.label, labels.labelled, labels.labels
	return nil
}

// appendLabels appends who is called what.
func (t *turns) appendLabels(out []byte) []byte {
	out = append(out, byte(t.labels))
	for v := range t.label {
		if t.labelled>>v&1 != 0 {
			out = append(out, byte(t.label[v]))
		} else {
			out = append(out, noLabel)
		}
	}
	return out
}

// readLabels reads what appendLabels wrote, in the part of turns that it fills.
func readLabels(raw []byte) (t turns, rest []byte, err error) {
	if len(raw) < 1+MaxSpeakers {
		return t, nil, errors.New("it is too short")
	}
	t.labels = min(int(raw[0]), MaxSpeakers+1)
	var seen voices
	for v, label := range raw[1 : 1+MaxSpeakers] {
		if label == noLabel {
			continue
		}
		if int(label) >= min(t.labels, MaxSpeakers) || seen>>label&1 != 0 {
			return t, nil, errors.New("its labels make no sense")
		}
		seen |= 1 << label
		t.label[v] = int(label)
		t.labelled |= 1 << v
	}
	if t.labels > MaxSpeakers || seen != 1<<t.labels-1 {
		return t, nil, errors.New("its labels make no sense")
	}
	return t, raw[1+MaxSpeakers:], nil
}
