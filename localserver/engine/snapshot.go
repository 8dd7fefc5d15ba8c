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
//	matches   for each speaker 2 bytes of length, then the label of its match
//	channel   a features.Channel
//	speakers  a snapshot of the clusterer
//	checksum  CRC-32 (Castagnoli) of everything before, 4 bytes
//
// It holds voiceprints, which are personal data.
const snapshotMagic = "hubbubv5"

// ErrSnapshot is the error for a snapshot that the engine cannot continue with:
// it is damaged, of other weights, or of more speakers than the Config allows.
var ErrSnapshot = errors.New("the snapshot of speakers cannot be used")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSnapshot appends to out a snapshot of the speakers. An engine for a later
// stream that restores it gives the same people the same numbers. It may be called
// at any time between two calls of Push, and after Flush.
func (e *Engine) AppendSnapshot(out []byte) []byte {
	from := len(out)
	out = append(out, snapshotMagic...)
	version := WeightsVersion()
	out = append(out, byte(len(version)))
	out = append(out, version...)
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
	matches, rest, err := readMatches(body[1+length:])
	if err == nil {
		err = e.source.restoreSnapshot(rest, matches)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return nil
}

func (p *pipeline) appendSnapshot(out []byte) []byte {
	return p.clusterer.AppendSnapshot(p.windows.Channel().Append(out))
}

func (p *pipeline) restoreSnapshot(snapshot []byte, matches [MaxSpeakers]string) error {
	channel, speakers, err := features.ParseChannel(snapshot)
	if err != nil {
		return err
	}
	if err := p.clusterer.Restore(speakers); err != nil {
		return err
	}
	p.windows.Resume(channel)
	p.matcher.restore(matches)
	return nil
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
