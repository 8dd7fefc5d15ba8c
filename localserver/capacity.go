package localserver

import "runtime"

// streamsPerCore is how many streams a core is trusted with.
//
// It is measured: `hubbub serve` held to one core, and `hubbub load` from
// another one with more and more streams, as long as the 99th percentile of
// the events' lag stays under 1.5 s and no chunk is dropped. A core of 2026's
// rented machines carried 110 streams with the trained networks (61 % busy),
// and 460 with the classical engine. Two thirds of the smaller number are the
// default: machines differ, and have other things to do.
const streamsPerCore = 70

// DefaultMaxStreams is how many streams run at once when Options name no
// number: streamsPerCore for each core that the process may use.
func DefaultMaxStreams() int { return streamsPerCore * runtime.GOMAXPROCS(0) }
