package localserver

import "runtime"

// streamsPerCore is how many streams a core is trusted with.
//
// It is measured: `hubbub serve` held to one core, and `hubbub load` from
// another one with more and more streams, as long as the 99th percentile of
// the events' lag stays under 1.5 s and no chunk is dropped. One kind of rented
// machine carried 110 (61 % of a core busy); another one, an older Xeon at 2.5
// GHz, 50 (79 % busy, 99th percentile 1.0 s) and no longer 60 (3.0 s). Two thirds
// of the smaller number, rounded up to a whole five, are the default: machines
// differ, and have other things to do.
const streamsPerCore = 35

// DefaultMaxStreams is how many streams run at once when Options name no
// number: streamsPerCore for each core that the process may use.
func DefaultMaxStreams() int { return streamsPerCore * runtime.GOMAXPROCS(0) }
