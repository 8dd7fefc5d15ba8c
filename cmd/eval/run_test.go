package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// TestAProgramIsMeasured: its turns are scored under the name of the recording. That they are those of the engine is a test
// of the program.
func TestAProgramIsMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a program")
	}
	dir, program := makeSet(t), filepath.Join(t.TempDir(), "hubbub")
	testkit.Program(t, program, `#!/bin/sh
[ "$*" = "live --input $SET/real-dev/talk.wav --pace fast --output rttm --latency 2s" ] || { echo "$*" >&2; exit 2; }
echo 'SPEAKER audio 1 2.000 3.000 <NA> <NA> SPEAKER_00 <NA> <NA>'
`)
	t.Setenv("SET", dir)
	f := tables(t, "--dir", dir, "--latency", "2", "--program", program)[0].Sets[0]
	if f.LagP95 != nil || f.RTF <= 0 || math.Abs(f.DER-0.25) > 0.01 {
		t.Errorf("%+v: the lag cannot be measured, the factor can, and a quarter of the speech is missed", f)
	}
}

func TestAProgramThatFails(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a program")
	}
	dir := makeSet(t)
	_, err := eval(t, "--dir", dir, "--program", filepath.Join(dir, "none"))
	testkit.Contains(t, hint.Of(err), "make build", "a program that is not there", err)
	_, err = eval(t, "--dir", dir, "--program", "false")
	if err == nil || !strings.Contains(err.Error(), "exit code 1") {
		t.Errorf("a program that fails: %v", err)
	}
}
