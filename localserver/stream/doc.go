// Package stream runs the streams of a server: one Stream for each open
// stream, and one Watcher for each client that watches a stream.
//
// The path of a chunk through a stream, one file for each step:
//
//	reader.go     frames from the socket become chunks, or are rejected with an error message
//	pacer.go      a stream may not be faster than real time
//	worker.go     chunks go through the diarizer; a stream may not be without any for a minute
//	validator.go  what the diarizer returns becomes events that the contract allows
//	writer.go     events, pings and the close frame go to the socket
//	journal.go    the same events go to the store, and then the end of the record
//
// A stream has four goroutines besides the one that runs it: reader, writer,
// journal and snapshot writer, one more when its audio is recorded, and those of a
// words.Queue when its client asked for words. Run ends them all before it returns.
//
// The following holds at every moment, whatever a client or the diarizer does:
//
//   - Events are sent in order of their timestamps. No timestamp is later than
//     the audio received. Every start has exactly one later end. No label has
//     two open turns.
//   - When the record of a stream reads done, all of its events are in the
//     store.
//   - Every queue is bounded. A slow diarizer or a slow client delays its own
//     stream only, and is disconnected in the end.
//   - A failure inside one stream ends that stream and nothing else.
package stream
