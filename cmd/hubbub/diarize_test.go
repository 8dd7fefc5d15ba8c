package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/capture"
	"hubbub/capture/audiofile"
	"hubbub/protocol/testkit"
)

// TestDiarizeInterrupted interrupts while one file is finished and another is
// not: the result of the first is kept, in its folder or, where it waits for an
// earlier file, on standard output.
func TestDiarizeInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long, short, out := filepath.Join(dir, "long.wav"), talkFile(t, 4), filepath.Join(dir, "out")
	writeSilence(t, long, 20*60*60)

	p := start(t, "diarize", short, long, "--out", out)
	p.line(`talk\.rttm$`)
	p.signal(os.Interrupt)
	p.ends(exitInterrupted)
	raw, err := os.ReadFile(filepath.Join(out, "talk.rttm"))
	if err != nil || !bytes.HasPrefix(raw, []byte("SPEAKER talk 1 ")) {
		t.Errorf("the finished result is %q, %v", raw, err)
	}
	if files, _ := os.ReadDir(out); len(files) != 1 {
		t.Errorf("%d files are in the folder, want 1", len(files))
	}

	x := inTerminalWith(t, 100, 20, []string{"GOMAXPROCS=2"}, "diarize", long, short, "--output", "rttm")
	x.Shows(`(?m)^.*talk\.wav$`, "processed| of 20h0m")
	x.Keys("C-c")
	x.ends(exitInterrupted)
	x.Shows("SPEAKER talk 1 ")
}

// TestDiarizeIntoAClosedPipe: when nobody reads the results, the files that are left are not processed.
func TestDiarizeIntoAClosedPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	testkit.NoError(t, err)
	testkit.NoError(t, r.Close())
	defer w.Close()
	second := filepath.Join(t.TempDir(), "second.wav")
	raw := testkit.Must(os.ReadFile(talkFile(t, 4)))(t)
	testkit.NoError(t, os.WriteFile(second, raw, 0o600))
	var stderr bytes.Buffer
	a := &App{Args: []string{"diarize", talkFile(t, 4), second}, Stdout: w, Stderr: &stderr}
	if code := a.Main(); code != exitInterrupted || stderr.Len() > 0 {
		t.Errorf("code %d, %s", code, stderr.String())
	}
}

// writeSilence writes a WAV file of so many seconds that needs no disk space where
// the file system has sparse files.
func writeSilence(t *testing.T, path string, seconds int) {
	t.Helper()
	size := int64(seconds) * capture.SampleRate * 2
	testkit.NoError(t, os.WriteFile(path, audiofile.WAVHeader(size), 0o600))
	testkit.NoError(t, os.Truncate(path, audiofile.WAVHeaderBytes+size))
}

// TestDiarizeTooLong: a file that is too long is refused before it is processed.
func TestDiarizeTooLong(t *testing.T) {
	t.Parallel()
	long := filepath.Join(t.TempDir(), "long.wav")
	writeSilence(t, long, 25*60*60)
	start(t, "diarize", long).ends(exitFailed, "longer than 24 h\nCut it into parts.")
}

// TestDiarizeSilentRecogniser: a recogniser that never responds is reported while the program waits.
func TestDiarizeSilentRecogniser(t *testing.T) {
	t.Parallel()
	p := start(t, "diarize", talkFile(t, 4), "--words", "sleep 60")
	p.says("waiting for the recogniser, which has not responded for 10 s\n", 1)
	p.signal(os.Interrupt)
	p.ends(exitInterrupted)
}

// TestJobs lists more jobs than one response has, shows one and cancels one.
func TestJobs(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		switch asked := r.Method + " " + r.URL.Path + " " + query.Get("status") + query.Get("limit") + query.Get("cursor"); asked {
		case "GET /v2/jobs running100":
			item := `{"id":"first","status":"running","createdAt":"2031-03-04T09:30:00Z","kind":"diarize","progress":0.5}`
			fmt.Fprintf(w, `{"items":[%s%s],"nextCursor":"next"}`, strings.Repeat(item+",", 99), item)
		case "GET /v2/jobs running50next":
			fmt.Fprint(w, `{"items":[{"id":"last","status":"created","createdAt":"2031-03-04T09:29:00Z","progress":0}],"nextCursor":null}`)
		default:
			fmt.Fprintf(w, `{"jobId":%q}`, asked)
		}
	}))
	t.Cleanup(service.Close)
	jobs := func(args ...string) string {
		stdout, _ := inProcess(t, 0, "", append([]string{"jobs", "--server", service.URL, "--api-key", "key"}, args...)...)
		return stdout
	}
	lines := strings.Split(strings.TrimSpace(jobs("list", "--status", "running", "--limit", "150")), "\n")
	if n := len(lines); n != 102 || strings.Join(strings.Fields(lines[1]), " ") != "first diarize running 50 % 2031-03-04T09:30:00Z" ||
		strings.Join(strings.Fields(lines[n-1]), " ") != "last - created - 2031-03-04T09:29:00Z" {
		t.Errorf("%d lines, from %q to %q", n, lines[1], lines[n-1])
	}
	for command, method := range map[string]string{"show": http.MethodGet, "cancel": http.MethodDelete} {
		testkit.Contains(t, jobs(command, "some-id"), `"jobId": "`+method+` /v1/jobs/some-id `, command, "prints")
	}
}

func TestDiarizeNamesOfOtherSystems(t *testing.T) {
	for system, want := range map[string]bool{"linux": false, "darwin": true, "windows": true} {
		if got := sameName("Talk", "talk", system); got != want || !sameName("talk", "talk", system) || sameName("talk", "talks", system) {
			t.Errorf("%s: the same name: %v", system, got)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"a.wav", "b.wav", "c.mp3"} {
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	pattern, none := filepath.Join(dir, "*.wav"), filepath.Join(dir, "*.flac")
	testkit.EqualSlices(t, expand([]string{"x.wav", pattern, none}, "windows"), []string{"x.wav", filepath.Join(dir, "a.wav"), filepath.Join(dir, "b.wav"), none}, "on Windows")
	testkit.EqualSlices(t, expand([]string{pattern}, "linux"), []string{pattern}, "on Linux")
}
