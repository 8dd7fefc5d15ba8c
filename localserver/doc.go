// Package localserver is the built-in diarization service: the HTTP operations
// and audio streams of the specification, over TLS. A program embeds it with
// one call of Start.
//
// Requests pass middleware.go, router.go and ratelimit.go, and reach the
// handlers in live.go (create a stream, its status), handshake.go (open it;
// claims.go uses up its token), watch.go (watch it), media.go (signed addresses
// of objects), transfer.go (upload and download), and results.go (files
// generated from a stream's events). The package stream runs what the handshake
// opens.
//
// On a store that several nodes share, leasemonitor.go and membership.go detect
// dead nodes and end their streams.
//
// The following holds at every moment:
//
//   - A token opens one stream, once. A handshake whose outcome is unknown does
//     not use it up: the next request repeats it, or it is withdrawn.
//   - The status of a session goes from created to running to done or error and
//     never back, except that a withdrawn session reads created again.
//   - No request passes that is not counted, and no stream opens beyond its
//     account's quota, on any node. If the store does not answer, both are
//     answered 503.
package localserver
