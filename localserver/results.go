package localserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

// resultFormat is a form in which the turns of a stream can be had.
type resultFormat struct {
	contentType string
	write       func(w io.Writer, id string, turns []protocol.Turn) error
}

// resultFormats are the files under media://live/<id>/ that are made of what
// the journal keeps, when somebody asks.
var resultFormats = map[string]resultFormat{
	"turns.rttm": {"text/plain; charset=utf-8", protocol.WriteRTTM},
	"turns.json": {"application/json", writeTurns},
}

// keptAudio is the file of a stream's audio.
const keptAudio = "audio.wav"

// resultName takes live/<id>/<file> apart. Kept audio is an object like any
// other and no result in this sense.
func resultName(name string) (id string, f resultFormat, ok bool) {
	rest, ok := strings.CutPrefix(name, resultPrefix)
	if !ok {
		return "", f, false
	}
	id, file, _ := strings.Cut(rest, "/")
	f, ok = resultFormats[file]
	return id, f, ok && id != ""
}

// finished returns the record of an account's stream that is done and whose
// results are still kept, else ErrNotFound.
func (s *Server) finished(ctx context.Context, account, id string) (store.Session, error) {
	rec, err := s.sessions.Get(ctx, id)
	if err == nil && (rec.Account != account || rec.Status != store.Done || rec.Completed == nil ||
		s.now().Sub(*rec.Completed) >= store.MediaTTL) {
		err = store.ErrNotFound
	}
	return rec, err
}

// result makes one file of a stream's turns.
func (s *Server) result(ctx context.Context, account, id string, f resultFormat) (io.ReadSeeker, store.MediaInfo, error) {
	rec, err := s.finished(ctx, account, id)
	if err != nil {
		return nil, store.MediaInfo{}, err
	}
	turns, err := s.keptTurns(ctx, id)
	if err != nil {
		return nil, store.MediaInfo{}, err
	}
	var out bytes.Buffer
	if err := f.write(&out, id, turns); err != nil {
		return nil, store.MediaInfo{}, err
	}
	sum := sha256.Sum256(out.Bytes())
	return bytes.NewReader(out.Bytes()), store.MediaInfo{Size: int64(out.Len()),
		Sum: hex.EncodeToString(sum[:]), Written: *rec.Completed}, nil
}

// keptTurns folds the events of a stream into turns, in order of their starts.
func (s *Server) keptTurns(ctx context.Context, id string) ([]protocol.Turn, error) {
	kept, err := s.journal.Messages(ctx, id)
	if err != nil {
		return nil, err
	}
	line := protocol.NewTimeline()
	for _, raw := range kept {
		e, err := protocol.ParseEvent(raw)
		if err != nil {
			return nil, err
		}
		line.Apply(e)
	}
	return line.Snapshot().Turns(), nil
}

// writeTurns writes the turns as one JSON array.
func writeTurns(w io.Writer, _ string, turns []protocol.Turn) error {
	if turns == nil {
		turns = []protocol.Turn{} // an empty array, not null
	}
	return json.NewEncoder(w).Encode(turns)
}
