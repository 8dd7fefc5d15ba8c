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

// resultFormat is a format of the turns of a stream.
type resultFormat struct {
	contentType string
	write       func(w io.Writer, id string, turns []protocol.Turn) error
}

// resultFormats are the files under media://live/<id>/ that are generated from
// the stored events on request.
var resultFormats = map[string]resultFormat{
	"turns.rttm": {"text/plain; charset=utf-8", protocol.WriteRTTM},
	"turns.json": {"application/json", writeTurns},
}

// audioFile is the file of a stream's audio.
const audioFile = "audio.wav"

// parseResultName parses live/<id>/<file>. Stored audio is an object like any
// other and no result in this sense.
func parseResultName(name string) (id string, f resultFormat, ok bool) {
	rest, ok := strings.CutPrefix(name, resultPrefix)
	if !ok {
		return "", f, false
	}
	id, file, _ := strings.Cut(rest, "/")
	f, ok = resultFormats[file]
	return id, f, ok && id != ""
}

// finishedStream returns the record of an account's stream that is done and
// whose results are still available, else ErrNotFound.
func (s *Server) finishedStream(ctx context.Context, account, id string) (store.Stream, error) {
	rec, err := s.lookUp(ctx, id)
	if err == nil && (rec.Account != account || rec.Status != store.Done || rec.Completed == nil ||
		s.now().Sub(*rec.Completed) >= store.MediaTTL) {
		err = store.ErrNotFound
	}
	return rec, err
}

// result generates one file of a stream's turns.
func (s *Server) result(ctx context.Context, account, id string, f resultFormat) (io.ReadSeeker, store.MediaInfo, error) {
	rec, err := s.finishedStream(ctx, account, id)
	if err != nil {
		return nil, store.MediaInfo{}, err
	}
	turns, err := s.turns(ctx, id)
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

// turns returns the turns of a stream from its stored events, in order of their
// starts.
func (s *Server) turns(ctx context.Context, id string) ([]protocol.Turn, error) {
	stored, err := s.store.Messages(ctx, id)
	if err != nil {
		return nil, err
	}
	line := protocol.NewTimeline()
	for _, raw := range stored {
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
