package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// Client, TLS and server change nothing: the program's turns are those of the engine
// alone.
func TestTheProgramGivesTheTurnsOfTheEngine(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the program")
	}
	program := filepath.Join(t.TempDir(), "hubbub")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../hubbub")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := makeSet(t)
	alone, through := filepath.Join(t.TempDir(), "alone"), filepath.Join(t.TempDir(), "through")
	if _, err := eval(t, "--dir", dir, "--out", alone); err != nil {
		t.Fatal(err)
	}
	measured := tables(t, "--dir", dir, "--out", through, "--program", program)
	turns := func(dir string) string {
		b, err := os.ReadFile(filepath.Join(dir, "1s", "talk.rttm"))
		testkit.NoError(t, err)
		return string(b)
	}
	if a, b := turns(alone), turns(through); a == "" || a != b {
		t.Errorf("the engine alone:\n%sthe program:\n%s", a, b)
	}
	if f := measured[0].Sets[0]; f.LagP95 != nil || f.RTF <= 0 {
		t.Errorf("lag %v, real-time factor %v: the lag cannot be measured, the factor can", f.LagP95, f.RTF)
	}
}

func TestAProgramThatFails(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a program")
	}
	dir := makeSet(t)
	_, err := eval(t, "--dir", dir, "--program", filepath.Join(dir, "none"))
	if !strings.Contains(hint.Of(err), "make build") {
		t.Errorf("a program that is not there: %v", err)
	}
	_, err = eval(t, "--dir", dir, "--program", "false")
	if err == nil || !strings.Contains(err.Error(), "exit code 1") {
		t.Errorf("a program that fails: %v", err)
	}
}
