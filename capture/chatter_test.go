package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func init() { children["chatter"] = chatterChild }

// chatterChild asks the native library for everything on a machine whose sound
// does not work, while it uses standard error itself.
func chatterChild() {
	stop := make(chan struct{})
	done := make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				done <- n
				return
			default:
				fmt.Fprintln(os.Stderr, "ours")
				n++
			}
		}
	}()
	_, err := Devices(context.Background())
	if err == nil {
		var src Source
		if src, err = Open(context.Background(), Spec{Input: "mic:no such device"}); err == nil {
			_ = src.Close()
		}
	}
	close(stop)
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"lines": <-done, "log": NativeLog(), "error": fmt.Sprint(err)})
}

// TestNativeChatterStaysOffTheScreen: what the libraries print is kept in
// NativeLog and not a byte of it reaches standard error, where our own lines
// arrive whole and complete.
func TestNativeChatterStaysOffTheScreen(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	home := t.TempDir()
	cmd.Env = append(os.Environ(), asChild+"=chatter", "HOME="+home, "XDG_RUNTIME_DIR="+home, "PULSE_SERVER=unix:"+home+"/none")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var told struct {
		Lines      int
		Log, Error string
	}
	if err := json.Unmarshal(out.Bytes(), &told); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	ours := 0
	for line := range strings.Lines(errs.String()) {
		if line != "ours\n" {
			t.Fatalf("on the screen: %q", line)
		}
		ours++
	}
	if hushIsExact && ours != told.Lines {
		t.Errorf("%d of our own %d lines arrived", ours, told.Lines)
	}
	if !strings.Contains(told.Error, "device") {
		t.Errorf("the answer was %q", told.Error)
	}
	t.Logf("%d bytes of chatter were kept", len(told.Log))
}
