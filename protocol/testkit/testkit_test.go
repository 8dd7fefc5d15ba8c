package testkit

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// failures is a test that goes on after its failures, which it keeps.
type failures []string

func (f *failures) Helper()                           {}
func (f *failures) Fatal(args ...any)                 { *f = append(*f, fmt.Sprint(args...)) }
func (f *failures) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }
func (f *failures) Errorf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }

// TestChecks: what is wrong is reported, and nothing else is.
func TestChecks(t *testing.T) {
	f := &failures{}
	NoError(f, nil)
	Must(1, nil)(f)
	Equal(f, "a", "a")
	Equal(f, time.Second, time.Second, "the time")
	EqualSlices(f, nil, []int{})
	Contains(f, "text", "ex")
	if len(*f) != 0 {
		t.Errorf("reported although nothing is wrong: %q", *f)
	}
	NoError(f, errors.New("no file"))
	if got := Must("text", errors.New("no network"))(f); got != "text" {
		t.Errorf("the value is %q", got)
	}
	Equal(f, "a\n", "b")
	Equal(f, time.Second, time.Minute, "the time of", 2)
	EqualSlices(f, []string{"a b"}, []string{"a", "b"}, "the words")
	EqualSlices(f, []float64{0.5}, nil)
	Contains(f, "text", "b", "the file")
	Contains(f, "line\n", "b")
	if want := (failures{"no file", "no network", `"a\n", want "b"`, "the time of 2: 1s, want 1m0s", `the words: ["a b"], want ["a" "b"]`,
		"[0.5], want []", `the file: "b" is not in "text"`, "\"b\" is not in\nline\n"}); !slices.Equal(*f, want) {
		t.Errorf("reported as %q, want %q", *f, want)
	}
}
