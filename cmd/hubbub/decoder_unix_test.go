//go:build unix

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubbub/protocol"
)

// TestDecoderHangs gives a server an ffmpeg that hangs, with a child that hangs too:
// both are killed after a minute without output, the job fails and says why, and
// meanwhile other jobs run.
func TestDecoderHangs(t *testing.T) {
	t.Parallel()
	skipShort(t)
	dir := t.TempDir()
	// A decoder must not write files, so its process number is the name of a folder.
	script := fmt.Sprintf("#!/bin/sh\nmkdir '%s/'$$\nsleep 10000\n", dir)
	if err := os.WriteFile(filepath.Join(dir, "ffmpeg"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	server := startWith(t, []string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")},
		"serve", "--listen", "127.0.0.1:0", "--api-key", "k", "--tls", "off", "--jobs", "2")
	base := strings.TrimPrefix(server.line(`^ready `), "ready ")
	talk, err := os.ReadFile(talkFile(t, 2))
	if err != nil {
		t.Fatal(err)
	}

	hanging := diarizeJob(t, base, "strange", []byte("\x00\x00\x00\x18ftypM4A \x00\x00\x02\x00"))
	group := 0 // of the decoder's processes
	poll(t, "decoder", 50*time.Millisecond, func() bool {
		list, _ := filepath.Glob(filepath.Join(dir, "[0-9]*"))
		if len(list) == 1 {
			group, _ = strconv.Atoi(filepath.Base(list[0]))
		}
		return group > 0
	})
	alive := func() bool { return syscall.Kill(-group, 0) == nil }
	if job := jobEnd(t, base, diarizeJob(t, base, "talk", talk)); job.Status != protocol.JobSucceeded {
		t.Errorf("the job beside a decoder that hangs: %s %s", job.Status, job.Output)
	}
	if !alive() {
		t.Error("the decoder was killed before its time")
	}
	if job := jobEnd(t, base, hanging); job.Status != protocol.JobFailed || !strings.Contains(string(job.Output), "ffmpeg delivered nothing for 1m") {
		t.Errorf("the job whose decoder hangs: %s %s", job.Status, job.Output)
	}
	poll(t, "end of the decoder's processes", 50*time.Millisecond, func() bool { return !alive() })
}

// diarizeJob uploads audio to a server that serves without TLS and creates a job.
func diarizeJob(t *testing.T, base, name string, audio []byte) (id string) {
	t.Helper()
	var location protocol.MediaLocation
	callPlain(t, http.MethodPost, base+"/v1/media/input", fmt.Sprintf(`{"url":"media://%s"}`, name), http.StatusCreated, &location)
	req, err := http.NewRequest(http.MethodPut, location.URL, strings.NewReader(string(audio)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("upload: %s", resp.Status)
	}
	var job protocol.JobAccepted
	callPlain(t, http.MethodPost, base+"/v1/diarize", fmt.Sprintf(`{"url":"media://%s"}`, name), http.StatusOK, &job)
	return job.JobID
}

// jobEnd waits for the end of a job.
func jobEnd(t *testing.T, base, id string) (job protocol.JobStatus) {
	t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		callPlain(t, http.MethodGet, base+"/v1/jobs/"+id, "", http.StatusOK, &job)
		switch job.Status {
		case protocol.JobSucceeded, protocol.JobFailed, protocol.JobCanceled:
			return job
		}
	}
	t.Fatalf("the job has not ended: %+v", job)
	return job
}
