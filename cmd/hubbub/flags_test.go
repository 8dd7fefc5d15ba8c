package main

import "testing"

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"1": 1, "1000000": 1e6, "500MB": 5e8, "64MiB": 64 << 20, "1GiB": 1 << 30, "2gib": 2 << 30, "3kb": 3000, "7B": 7} {
		s, err := parseSize(text)
		if err != nil || int64(s) != want {
			t.Errorf("%s: %d, %v", text, int64(s), err)
		}
		if again, err := parseSize(s.String()); err != nil || again != s {
			t.Errorf("%s is written as %s", text, s)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.5GiB", "GiB", "lots", "99999999999GiB", "0MB", "1 GiB"} {
		if _, err := parseSize(text); err == nil {
			t.Errorf("%q is a size", text)
		}
	}
}
