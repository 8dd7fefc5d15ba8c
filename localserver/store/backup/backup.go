// Package backup writes the store in a data folder and the other files of the folder to
// an archive, and makes a data folder from one.
package backup

import (
	"archive/zip"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go/jetstream"

	"hubbub/localserver/store/datafolder"
	"hubbub/protocol/atomicfile"
	"hubbub/protocol/hint"
)

// A backup is a ZIP archive of a data folder:
//
//	streams/NAME       the messages of a stream, as in a snapshot of NATS (version 2)
//	streams/NAME.json  its configuration
//	files/PATH         another file of the folder
//	manifest.json      the names of all of these, at the end
//
// ZIP adds the size and a checksum of each.
//
// The messages are read one by one. A snapshot of NATS ends at the message that is the
// newest when it begins, so it would have neither the old nor the new version of a
// record that is replaced meanwhile.
const (
	format        = 1
	streamEntries = "streams/"
	fileEntries   = "files/"
	manifestEntry = "manifest.json"
	configSuffix  = ".json"
	// readTimeout bounds the reading of one message.
	readTimeout = 10 * time.Second
)

// manifest lists what is in a backup.
type manifest struct {
	Format  int       `json:"format"`
	Created time.Time `json:"created"`
	Stored  int64     `json:"stored"` // bytes of all messages
	Entries []entry   `json:"entries"`
}

type entry struct {
	Name string `json:"name"`
}

// Write writes a backup of a data folder, whose NATS server is read over js and
// used as before meanwhile. What was acknowledged when Write was called is in it.
func Write(ctx context.Context, js jetstream.JetStream, dir string, w io.Writer) error {
	var names []string
	list := js.StreamNames(ctx)
	for name := range list.Name() {
		names = append(names, name)
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("list the streams: %w", err)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(order(a)-order(b), cmp.Compare(a, b)) })
	b := writer{js: js, zip: zip.NewWriter(w), list: manifest{Format: format, Created: time.Now().UTC()}}
	for _, name := range names {
		if err := b.addStream(ctx, name); err != nil {
			return fmt.Errorf("back up %s: %w", name, err)
		}
	}
	if err := b.addFiles(dir); err != nil {
		return err
	}
	return b.finish()
}

// order is the place of a stream in a backup. The queue of jobs comes before the
// records, so that a job that ends meanwhile is in the queue or recorded as ended.
// Records come before events and media, so that what a record refers to is in the
// backup as well.
func order(stream string) int {
	switch {
	case stream == "JOBS":
		return 0
	case strings.HasPrefix(stream, "KV_"):
		return 1
	}
	return 2
}

// writer writes the entries of a backup.
type writer struct {
	js   jetstream.JetStream
	zip  *zip.Writer
	list manifest
}

// addStream adds the configuration and the messages of a stream.
func (b *writer) addStream(ctx context.Context, name string) error {
	stream, err := b.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	config, err := json.Marshal(info.Config)
	if err != nil {
		return err
	}
	if err := b.addBytes(streamEntries+name+configSuffix, config); err != nil {
		return err
	}
	return b.add(streamEntries+name, func(w io.Writer) error {
		compressed := s2.NewWriter(w)
		to := archive.NewWriter(compressed)
		// The first one has to be 1 at least; an empty stream begins behind its end.
		first := max(info.State.FirstSeq, 1)
		state, err := json.Marshal(natsserver.StreamState{FirstSeq: first, LastSeq: max(info.State.LastSeq, first-1)})
		if err == nil {
			err = addMessage(to, archive.Header{Name: "state.json", Timestamp: b.list.Created.UnixNano(), PayloadSize: int64(len(state))}, nil, state)
		}
		// A record that is replaced moves to the end, so that is where reading
		// ends. Other messages only follow the ones that matter.
		last := info.State.LastSeq
		if info.Config.MaxMsgsPerSubject == 1 {
			last = ^uint64(0)
		}
		end, count := info.State.LastSeq, uint64(0)
		for seq := first; err == nil && seq <= last; seq++ {
			var m *natsserver.StoredMsg
			if m, err = b.nextMessage(ctx, name, seq); m == nil || m.Sequence > last {
				break
			}
			seq = m.Sequence
			end, count = max(end, seq), count+1
			b.list.Stored += int64(len(m.Header) + len(m.Data))
			err = addMessage(to, archive.Header{Name: m.Subject, Timestamp: m.Time.UnixNano(), Sequence: seq,
				HeaderSize: int64(len(m.Header)), PayloadSize: int64(len(m.Data))}, m.Header, m.Data)
		}
		if err == nil {
			err = b.checkCount(ctx, name, end, count)
		}
		if err == nil {
			err = to.WriteHeader(&archive.Header{}) // the end
		}
		return errors.Join(err, compressed.Close())
	})
}

// checkCount returns an error if a stream has more messages up to a sequence number than were
// read: for one that it cannot read, the NATS server responds that there are no more.
func (b *writer) checkCount(ctx context.Context, name string, end, count uint64) error {
	stream, err := b.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	state := stream.CachedInfo().State
	if later := max(state.LastSeq, end) - end; state.Msgs > count+later {
		return hint.Errorf("Stop the server: `hubbub store check` says what is damaged. A start leaves it out, except media, which `hubbub store purge` deletes.",
			"%d records cannot be read", state.Msgs-count-later)
	}
	return nil
}

// nextMessage reads the first message of a stream from a sequence number on;
// nil if there is none.
func (b *writer) nextMessage(ctx context.Context, stream string, seq uint64) (*natsserver.StoredMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	request, err := json.Marshal(natsserver.JSApiMsgGetRequest{Seq: seq, NextFor: ">"})
	if err != nil {
		return nil, err
	}
	m, err := b.js.Conn().RequestWithContext(ctx, fmt.Sprintf(natsserver.JSApiMsgGetT, stream), request)
	if err != nil {
		return nil, err
	}
	var response natsserver.JSApiMsgGetResponse
	if err := json.Unmarshal(m.Data, &response); err != nil {
		return nil, err
	}
	if response.Error != nil && response.Error.Code != http.StatusNotFound {
		return nil, response.Error
	}
	return response.Message, nil
}

func addMessage(to *archive.Writer, head archive.Header, parts ...[]byte) error {
	err := to.WriteHeader(&head)
	for _, p := range parts {
		if err == nil {
			_, err = to.Write(p)
		}
	}
	return err
}

// add adds an entry, also to the manifest.
func (b *writer) add(name string, content func(io.Writer) error) error {
	w, err := b.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store, Modified: b.list.Created})
	if err != nil {
		return err
	}
	b.list.Entries = append(b.list.Entries, entry{name})
	return content(w)
}

func (b *writer) addBytes(name string, content []byte) error {
	return b.add(name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// addFiles adds the files of a data folder that are not the NATS server's.
func (b *writer) addFiles(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == datafolder.JetStream || name == datafolder.Jobs):
			return fs.SkipDir
		case !d.Type().IsRegular() || name == datafolder.LockFile || strings.HasPrefix(d.Name(), atomicfile.TempPrefix):
			return nil
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		} else if err != nil {
			return err
		}
		return b.addBytes(fileEntries+filepath.ToSlash(name), raw)
	})
}

func (b *writer) finish() error {
	raw, err := json.MarshalIndent(b.list, "", " ")
	if err != nil {
		return err
	}
	return errors.Join(b.addBytes(manifestEntry, raw), b.zip.Close())
}
