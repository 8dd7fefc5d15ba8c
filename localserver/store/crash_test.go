package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// victimDir is the variable that makes the test binary the process to be
// killed, working in the folder that it names.
const victimDir = "HUBBUB_STORE_VICTIM"

// victim writes sessions, tokens and events as fast as it can from several
// goroutines, and says so only after the store has acknowledged them.
func victim(dir string) {
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
					_, err = s.Begin(ctx, id, "token-of-"+id, Opening{"n", "first"}, noon)
				}
				if err == nil {
					err = s.Append(ctx, id, 0, [][]byte{[]byte(id)})
				}
				mu.Lock()
				if err != nil {
					fmt.Println("failed:", err)
					os.Exit(1)
				}
				fmt.Println("kept", id)
				mu.Unlock()
			}
		}()
	}
	select {}
}

// A process is killed in the middle of writing. Everything that it had been
// promised is there afterwards, no used token works again, and the folder is
// free for the next process.
func TestKillLosesNothing(t *testing.T) {
	for _, enough := range []int{40, 80} {
		dir, kept := t.TempDir(), map[string]bool{}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		watchdog := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			id, ok := strings.CutPrefix(lines.Text(), "kept ")
			if !ok {
				t.Errorf("the process says %q", lines.Text())
				break
			}
			kept[id] = true
			if len(kept) == enough {
				_ = cmd.Process.Kill() // what is still in the pipe was acknowledged too
			}
		}
		_ = cmd.Wait()
		watchdog.Stop()
		if len(kept) < enough {
			t.Fatalf("only %d records were written", len(kept))
		}
		verify(t, dir, kept)
	}
}

func verify(t *testing.T, dir string, kept map[string]bool) {
	t.Helper()
	ctx := context.Background()
	s, err := Open(ctx, Options{Dir: dir})
	if err != nil {
		t.Fatalf("after the kill: %v", err)
	}
	defer func() { _ = s.Close() }()
	for id := range kept {
		if rec, err := s.Get(ctx, id); err != nil || rec.Account != "a" {
			t.Errorf("%s is lost: %v", id, err)
		}
		if got, err := s.Messages(ctx, id); err != nil || len(got) != 1 || string(got[0]) != id {
			t.Errorf("%s lost its events: %q %v", id, got, err)
		}
		var n int
		fmt.Sscanf(id[strings.IndexByte(id, '-')+1:], "%d", &n)
		used := n%2 == 1
		if _, err := s.Begin(ctx, id, "token-of-"+id, Opening{"n", "second"}, noon); (err != nil) != used {
			t.Errorf("token of %s, used before: %v; now: %v", id, used, err)
		}
	}
}
