package localserver

import "runtime"

// streamsPerCore is how many streams a core is trusted with.
//
// It is measured: `hubbub serve` held to one core, and `hubbub load` from
// another one with more and more streams, as long as the 99th percentile of
// the events' lag stays under 1.5 s and no chunk is dropped. With weights 3.1 one
// thread of a core, the load on the other, carried 40 (87 % busy, 99th percentile
// 1.1 s) and no longer 50 (2.3 s). Two thirds, rounded up to a whole five, are
// the default: machines differ, and have other things to do.
const streamsPerCore = 30

// DefaultMaxStreams is how many streams run at once when Options name no
// number: streamsPerCore for each core that the process may use.
func DefaultMaxStreams() int { return streamsPerCore * runtime.GOMAXPROCS(0) }
