// Package localserver is the built-in diarization service: the HTTP operations
// and the audio stream of the specification, over TLS, on top of the engine
// and the store. A program embeds it with one call of Start.
//
// One chunk's way through a stream, a file for each step:
//
//	handshake.go  the address is opened, its token used up
//	reader.go     frames become chunks; what is wrong with one is said at once
//	pace.go       a stream keeps to real time
//	worker.go     chunks go through the engine
//	ledger.go     what the engine says becomes legal events
//	writer.go     events, pings and the close leave on the socket
//	journal.go    the same events are kept in the store
//	outbox.go     what ended while a cluster was away is kept for it
//
// Beside the streams: media.go and mediatransfer.go move objects under
// addresses that signed.go seals, results.go makes what streams leave behind,
// apikeys.go, signingkeys.go and sharedkeys.go are the keys, limits.go the
// requests a minute, openapi.json and metrics.go tell what there is and how it
// goes, and the package rehearsal makes the server misbehave for those who ask
// for it.
//
// What holds at every moment, whatever a client or the engine does:
//
//   - A token opens one stream once. A handshake of which the store does not
//     tell what became burns none: openings.go makes it again or takes it back.
//   - Events leave in order of their timestamps, no timestamp is later than
//     the audio received, every start has exactly one later end, and no label
//     has two open turns.
//   - A session's status goes created, running, then done or error, and never
//     back, except that one whose opening was taken back reads created again.
//     When it reads done, all of its events are in the store.
//   - No request is let through that is not counted, and no stream opened that
//     has no place, on whatever node: without a store, both are 503.
//   - Every queue is bounded: a slow engine or a slow reader slows its own
//     stream, and is closed in the end.
//   - What breaks inside one stream ends that stream and nothing else.
package localserver
