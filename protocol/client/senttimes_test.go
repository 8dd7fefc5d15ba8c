package client

import (
	"testing"
	"time"

	"hubbub/protocol"
)

// An event's lag is counted from the chunk that holds the audio just before its timestamp.
func TestLagOfATimestamp(t *testing.T) {
	var s sentTimes
	if lag := s.lag(1, time.Second); lag >= 0 {
		t.Errorf("nothing was sent: %v", lag)
	}
	for i := range 10 {
		s.add(time.Duration(i) * time.Second)
	}
	for timestamp, chunk := range map[float64]int{0: 0, 0.001: 0, 0.1: 0, 0.101: 1, 0.3: 2, 0.7: 6, 0.95: 9, 1: 9, 7: 9} {
		if lag := s.lag(timestamp, time.Minute); lag != time.Minute-time.Duration(chunk)*time.Second {
			t.Errorf("%v: %v, want that of chunk %d", timestamp, lag, chunk)
		}
	}
}

// The times take a bounded space, however long a stream runs.
func TestSentTimesAreBounded(t *testing.T) {
	const chunks = 5 * maxSentTimes
	var s sentTimes
	for i := range chunks {
		s.add(time.Duration(i) * time.Second)
	}
	if len(s.times) > 2*maxSentTimes {
		t.Errorf("%d times are kept", len(s.times))
	}
	for chunk, want := range map[int]int{chunks - 1: chunks - 1, 4 * maxSentTimes: 4 * maxSentTimes, 0: chunks - len(s.times)} {
		if lag := s.lag(float64(chunk+1)*protocol.ChunkDuration.Seconds(), chunks*time.Second); lag != time.Duration(chunks-want)*time.Second {
			t.Errorf("chunk %d: %v, want that of chunk %d", chunk, lag, want)
		}
	}
}
