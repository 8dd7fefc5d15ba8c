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

	"hubbub/capture/device"
	"hubbub/protocol/testkit"
)

func init() { children["native stderr"] = nativeStderrChild }

// nativeStderrChild lists and opens devices on a machine without sound while it
// writes to standard error itself.
func nativeStderrChild() {
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
	_, err := device.List(context.Background())
	if err == nil {
		var src Source
		if src, err = Open(context.Background(), Spec{Input: "mic:no such device"}); err == nil {
			_ = src.Close()
		}
	}
	close(stop)
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"lines": <-done, "error": fmt.Sprint(err)})
}

// TestNativeStderrIsDiscarded: nothing that the libraries print reaches standard
// error, while all of our own lines do.
func TestNativeStderrIsDiscarded(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	cmd := exec.Command(os.Args[0])
	home := t.TempDir()
	cmd.Env = append(os.Environ(), asChild+"=native stderr", "HOME="+home, "XDG_RUNTIME_DIR="+home, "PULSE_SERVER=unix:"+home+"/none")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var report struct {
		Lines int
		Error string
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	ours := 0
	for line := range strings.Lines(errs.String()) {
		if line != "ours\n" {
			t.Fatalf("unexpected line: %q", line)
		}
		ours++
	}
	if ours != report.Lines {
		t.Errorf("%d of our own %d lines arrived", ours, report.Lines)
	}
	testkit.Contains(t, report.Error, "device", "the error")
}
