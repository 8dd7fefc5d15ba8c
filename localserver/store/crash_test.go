package store

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

// childDir is the environment variable that makes the test binary the process
// to be killed, working in the folder that it names.
const childDir = "HUBBUB_STORE_CHILD"

// writer writes streams, tokens and events as fast as it can from several
// goroutines, and prints their ids after the store has acknowledged them.
func writer(dir string) {
	s, err := Open(context.Background(), Options{Dir: dir})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	ctx := context.Background()
	var mu sync.Mutex
	for w := range 4 {
		go func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("w%d-%d", w, i)
				err := s.Create(ctx, record(id), "token-of-"+id)
				if err == nil && i%2 == 1 {
					err = s.Begin(ctx, id, "token-of-"+id, Claim{"n", "first"}, noon)
				}
				if err == nil {
					err = s.Append(ctx, id, 0, [][]byte{[]byte(id)})
				}
				mu.Lock()
				if err != nil {
					fmt.Println("failed:", err)
					os.Exit(1)
				}
				fmt.Println("stored", id)
				mu.Unlock()
			}
		}()
	}
	select {}
}

// A process is killed while it writes. Everything that was acknowledged is there
// afterwards, no used token works again, and the folder is free for the next
// process.
func TestKillLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, enough := range []int{40, 80} {
		dir, stored := t.TempDir(), map[string]bool{}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out := testkit.Must(cmd.StdoutPipe())(t)
		testkit.Start(t, cmd)
		watchdog := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			id, ok := strings.CutPrefix(lines.Text(), "stored ")
			if !ok {
				t.Errorf("the process says %q", lines.Text())
				break
			}
			stored[id] = true
			if len(stored) == enough {
				_ = cmd.Process.Kill() // what is still in the pipe was acknowledged as well
			}
		}
		_ = cmd.Wait()
		watchdog.Stop()
		if len(stored) < enough {
			t.Fatalf("only %d records were written", len(stored))
		}
		verify(t, dir, stored)
	}
}

func verify(t *testing.T, dir string, stored map[string]bool) {
	t.Helper()
	ctx := context.Background()
	s, err := Open(ctx, Options{Dir: dir})
	if err != nil {
		t.Fatalf("after the kill: %v", err)
	}
	defer func() { _ = s.Close() }()
	for id := range stored {
		if rec, err := s.Get(ctx, id); err != nil || rec.Account != "a" {
			t.Errorf("%s is lost: %v", id, err)
		}
		if got, err := s.Messages(ctx, id); err != nil || len(got) != 1 || string(got[0]) != id {
			t.Errorf("%s lost its events: %q %v", id, got, err)
		}
		var n int
		fmt.Sscanf(id[strings.IndexByte(id, '-')+1:], "%d", &n)
		used := n%2 == 1
		if err := s.Begin(ctx, id, "token-of-"+id, Claim{"n", "second"}, noon); (err != nil) != used {
			t.Errorf("token of %s, used before: %v; now: %v", id, used, err)
		}
	}
}

// An object that was replaced and deleted stays deleted when the store is opened after a
// crash, and its name can be used again.
func TestMediaStayDeletedAfterACrash(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	s := open(t, dir)
	for range 2 {
		for seed := range uint64(2) {
			put(t, s, "a", "x", noise(10, seed), noon)
		}
		put(t, s, "a", "y", noise(10, 9), noon)
		testkit.NoError(t, s.DeleteMedia(ctx, "a", "x", noon))
	}
	crashed := t.TempDir() // the files as they are at the moment
	testkit.NoError(t, os.CopyFS(crashed, os.DirFS(dir)))
	again := open(t, crashed)
	if list, used, err := again.ListMedia(ctx, "a", noon); len(list) != 1 || list[0].Name != "y" || used != 10 || err != nil {
		t.Errorf("%+v, %d bytes, %v", list, used, err)
	}
	body := noise(10, 3)
	put(t, again, "a", "x", body, noon)
	if got := get(t, again, "a", "x", noon); !bytes.Equal(got, body) {
		t.Errorf("%x, not %x", got, body)
	}
}
