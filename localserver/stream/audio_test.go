package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// blocked is a store that begins to write when gate is closed.
type blocked struct {
	Store
	gate chan struct{}
}

func (b blocked) CreateMedia(ctx context.Context, account, name string, now func() time.Time) (*store.MediaWriter, error) {
	<-b.gate
	return b.Store.CreateMedia(ctx, account, name, now)
}

// The audio of a stream that is done is stored, sample for sample; that of one
// that is not, or is too long, is not.
func TestRecording(t *testing.T) {
	s := testkit.Must(store.Open(context.Background(), store.Options{}))(t)
	defer func() { _ = s.Close() }()
	to := AudioTarget{Account: "a", Name: "x", MaxBytes: 1 << 20}
	samples := make([]float32, protocol.ChunkSamples)
	for i := range samples {
		samples[i] = 0.5
	}
	samples[1], samples[2] = 2, -2 // clipped
	record := func(to AudioTarget, chunks int, keep bool) {
		r := startAudioWriter(s, to, time.Now, discard)
		for range chunks {
			r.add(samples)
		}
		r.finish(t.Context(), keep)
		r.wait()
	}
	absent := func(what string) {
		t.Helper()
		if _, err := s.StatMedia(t.Context(), "a", "x", time.Now()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	record(to, 4, false)
	absent("a stream that failed")
	small := to
	small.MaxBytes = 10_000
	record(small, 4, true)
	absent("audio that is too long")
	gate := make(chan struct{})
	r := startAudioWriter(blocked{s, gate}, to, time.Now, discard)
	for range queuedAudio + 2 {
		r.add(samples)
	}
	close(gate)
	r.finish(t.Context(), true)
	r.wait()
	absent("a store that was too slow")
	record(to, 4, true)
	object := testkit.Must(s.OpenMedia(t.Context(), "a", "x", time.Now()))(t)
	wav, err := io.ReadAll(object)
	if err != nil || !bytes.Equal(wav, audiofile.WAV(slices.Repeat(samples, 4))) {
		t.Errorf("the object has %d bytes, or others than were recorded (%v)", len(wav), err)
	}
	var none *audioWriter // a stream without recording
	none.add(samples)
	none.finish(t.Context(), true)
	none.wait()
}
