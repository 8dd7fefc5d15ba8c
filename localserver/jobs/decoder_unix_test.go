//go:build unix

package jobs

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol/testkit"
)

// TestDecoderHangs: an ffmpeg that hangs, with a child that hangs too, is killed after
// the time without output that is configured; the job fails and says why, and
// meanwhile other jobs run.
func TestDecoderHangs(t *testing.T) { // not parallel: it changes PATH
	dir := t.TempDir()
	// A decoder must not write files, so its process number is the name of a folder.
	script := fmt.Sprintf("#!/bin/sh\nmkdir '%s/'$$\nsleep 10000\n", dir)
	testkit.Program(t, filepath.Join(dir, "ffmpeg"), script)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	s := openStore(t)
	put(t, s, "a", "strange", []byte("\x00\x00\x00\x18ftypM4A \x00\x00\x02\x00"))
	put(t, s, "a", "talk", silence(16000))
	hanging := submit(t, s, newJob("a", "strange"))
	const stall = 5 * time.Second
	var log bytes.Buffer // one write after the other; read after Close
	r := start(t, Options{Store: s, Workers: 2, decoderStall: stall, Logger: slog.New(slog.NewJSONHandler(&log, nil))})

	group := 0 // of the decoder's processes
	testkit.Eventually(t, "a decoder", func() bool {
		if list := testkit.Files(t, dir, "[0-9]*"); len(list) == 1 {
			group, _ = strconv.Atoi(filepath.Base(list[0]))
		}
		return group != 0
	})
	talk := submit(t, s, newJob("a", "talk"))
	if j := over(t, s, "a", talk); j.Status != store.JobSucceeded {
		t.Errorf("the job beside a decoder that hangs: %+v", j)
	}
	if j := over(t, s, "a", hanging); j.Status != store.JobFailed || !strings.Contains(j.Error, "ffmpeg delivered nothing for 5s") || j.Updated.Sub(j.Created) < stall {
		t.Errorf("the job whose decoder hangs: %+v", j)
	}
	testkit.Eventually(t, "the end of the decoder", func() bool { return syscall.Kill(-group, 0) != nil })
	r.Close()
	begun, ended := bytes.Index(log.Bytes(), []byte(`"job begun","job":"`+talk)), bytes.Index(log.Bytes(), []byte(`"job ended","job":"`+hanging))
	if begun < 0 || ended < begun {
		t.Errorf("the job beside a decoder that hangs did not begin before its end:\n%s", log.Bytes())
	}
}

// Without ffmpeg, the error of a job on another format says that it is missing.
func TestNoDecoder(t *testing.T) { // not parallel: it changes PATH
	t.Setenv("PATH", t.TempDir())
	s := openStore(t)
	put(t, s, "a", "strange", []byte("\x00\x00\x00\x18ftypM4A \x00\x00\x02\x00"))
	id := submit(t, s, newJob("a", "strange"))
	start(t, Options{Store: s, Workers: 1, Logger: slog.New(slog.DiscardHandler)})
	if j := over(t, s, "a", id); j.Status != store.JobFailed || !strings.Contains(j.Error, "MP4") || !strings.Contains(j.Error, "ffmpeg") || !strings.Contains(j.Error, "not installed") {
		t.Errorf("%+v", j)
	}
}
