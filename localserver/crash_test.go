package localserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/engine"
	"hubbub/localserver/store"
	"hubbub/protocol"
)

// victimDir is the variable that makes the test binary a server on the folder
// that it names, to be killed.
const victimDir = "HUBBUB_SERVER_VICTIM"

// victimNATS makes it a node of a cluster.
const victimNATS = "HUBBUB_SERVER_VICTIM_NATS"

func victim(dir string) {
	victimEngine := talker
	if os.Getenv(victimNATS) != "" {
		victimEngine = chatty
	}
	s, err := Start(context.Background(), Options{Addr: "127.0.0.1:0", APIKeys: []string{testKey}, DataDir: dir, RatePerMinute: -1,
		NATS: os.Getenv(victimNATS), NewDiarizer: func() (Diarizer, error) { return victimEngine(), nil }})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("ready", s.URL())
	_ = s.Wait()
}

// A server is killed while streams are open, and started again on its folder:
// nothing acknowledged is lost, what was running reads error and is whole,
// what was waiting can still be opened, once.
func TestKilledServerComesBack(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	lines := bufio.NewScanner(out)
	url := ""
	if lines.Scan() {
		url, _ = strings.CutPrefix(lines.Text(), "ready ")
	}
	if !strings.HasPrefix(url, "https://") {
		t.Fatalf("the server says %q", lines.Text())
	}

	// A client for the other process; its certificate is the one in the folder.
	pair, err := selfSigned(dir, time.Now(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	h := clientOf(t, url, pair.caPEM)
	waiting, done, running := h.create(), h.open(), h.open()
	running.chunks(3)
	if e := running.next(); e.Type != protocol.TypeSpeakerStart {
		t.Fatalf("got %s", e.Raw)
	}
	done.chunks(1)
	done.end()
	if _, code, _ := done.rest(); code != 1000 {
		t.Fatalf("code %d", code)
	}
	// Events are kept beside the way to the client: wait for the disk.
	eventually(t, "event on disk", func() bool { return onDisk(t, dir, "hubbub.events."+running.id) })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	again := serve(t, func(o *Options) { o.DataDir = dir })
	for id, want := range map[string]string{waiting.ID: "created", done.id: "done", running.id: "error"} {
		if st := again.status(id); st.Status != want {
			t.Errorf("status %s, want %s", st.Status, want)
		}
	}
	if got := again.kept(running.id); len(got) != 2 || got[0] != startAt20 || !strings.Contains(got[1], "speaker_end") {
		t.Errorf("kept of the running one: %q", got)
	}
	if got := again.kept(done.id); len(got) != 2 {
		t.Errorf("kept of the finished one: %q", got)
	}
	address := again.Addr().String()
	moved := strings.Replace(waiting.URL, waiting.URL[len("wss://"):strings.Index(waiting.URL, "/v1/")], address, 1)
	conn, _, err := again.dial.Dial(moved, nil)
	if err != nil {
		t.Fatalf("the waiting one cannot be opened: %v", err)
	}
	_ = conn.Close()
	again.refused(moved, 401)
}

// onDisk looks for a text in the files below a folder.
func onDisk(t *testing.T, dir, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // files come and go
		}
		raw, _ := os.ReadFile(path)
		found = found || bytes.Contains(raw, []byte(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What is kept of streams is made whole, whatever was in the middle of what.
func TestCleanUp(t *testing.T) {
	ctx, now := context.Background(), time.Now()
	s, err := store.Open(ctx, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ev := func(kind engine.Kind, at float64, v int) []byte {
		typ := protocol.TypeSpeakerStart
		if kind == engine.End {
			typ = protocol.TypeSpeakerEnd
		}
		return protocol.NewSpeakerEvent(typ, at, protocol.SpeakerLabel(v)).Raw
	}
	on, off := engine.Start, engine.End
	cases := map[string]struct {
		kept  [][]byte
		added []string
	}{
		"nothing": {nil, nil},
		"whole":   {[][]byte{ev(on, 0, 0), ev(off, 1, 0)}, nil},
		"one":     {[][]byte{ev(on, 0, 0), ev(off, 1, 0), ev(on, 2, 1)}, []string{string(ev(off, 2.001, 1))}},
		"two": {[][]byte{ev(on, 0, 0), ev(on, 0.5, 1), ev(on, 0.7, 2), ev(off, 0.9, 1)},
			[]string{string(ev(off, 0.9, 0)), string(ev(off, 0.9, 2))}},
	}
	for id, c := range cases {
		rec := store.Session{ID: id, Node: "dead", Input: json.RawMessage("{}"), Expires: now.Add(time.Minute)}
		if err := errors.Join(s.Create(ctx, rec, "secret"), s.Append(ctx, id, 0, c.kept)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Begin(ctx, id, "secret", store.Opening{Node: "dead", Attempt: id}, now); err != nil {
			t.Fatal(err)
		}
	}
	h := serve(t) // for its log
	for range 2 { // the second time there is nothing left to do
		if err := cleanUp(ctx, s, s, "alive", now, h.log); err != nil {
			t.Fatal(err)
		}
	}
	for id, c := range cases {
		if rec, err := s.Get(ctx, id); err != nil || rec.Status != store.Failed || rec.Cause == "" {
			t.Errorf("%s: %+v %v", id, rec, err)
		}
		got, err := s.Messages(ctx, id)
		if err != nil || len(got) != len(c.kept)+len(c.added) {
			t.Errorf("%s: %q %v", id, got, err)
			continue
		}
		for i, want := range c.added {
			if string(got[len(c.kept)+i]) != want {
				t.Errorf("%s: added %q, want %q", id, got[len(c.kept):], c.added)
			}
		}
	}
}
