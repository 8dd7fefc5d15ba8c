package main

import "testing"

// Many streams go to this machine, or to one whose owner was asked.
func TestLoadIsNoAttack(t *testing.T) {
	t.Parallel()
	cases := map[string]bool{
		"https://localhost:8580": false, "http://127.0.0.1": false, "https://[::1]:1": false, "wss://127.9.9.9/x": false,
		"https://diarization.example": true, "https://192.0.2.1": true, "wss://localhost.example/": true, "https://0.0.0.0": true,
	}
	for address, want := range cases {
		for _, n := range []int{1, unconfirmedStreams, unconfirmedStreams + 1, 1000} {
			f := loadFlags{streams: count{value: n}}
			if got := f.tooMany(address); got != (want && n > unconfirmedStreams) {
				t.Errorf("%s, %d streams: %v", address, n, got)
			}
			f.yesRemote = true
			if f.tooMany(address) {
				t.Errorf("%s, %d streams with --yes-remote", address, n)
			}
		}
	}
}
