// Package jobs runs jobs on whole recordings: diarization, voiceprints and
// identification.
//
// A job is a record in the store and a message in a work queue. A worker takes
// the message, fairly among the accounts (fair.go), claims the record (attempt.go),
// fetches the audio (input.go), computes (compute.go, transcribe.go), stores the output
// and writes the end into the record. The webhook of the job is then a message in a queue
// of its own, whose workers call it (webhook.go).
//
// Every change of a record names the revision that it follows, so a job that was
// begun twice, because a node died or was partitioned, ends once. The worker of a
// claimed job renews the record every few seconds, and stops when it cannot.
//
// Begin reading in runner.go.
package jobs
