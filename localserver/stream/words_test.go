package stream

import (
	"context"
	"errors"
	"testing"
	"time"

	"hubbub/localserver/engine"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/words"
)

// speech is a function as a words.Recogniser.
type speech func(ctx context.Context) (string, error)

func (r speech) Recognise(ctx context.Context, _ []byte, _ bool) (string, []words.Word, error) {
	text, err := r(ctx)
	return text, nil, err
}

// The last words of a stream are waited for, but not those of a recogniser that has
// failed: it may hang until its interval is over, or longer.
func TestCloseWithoutWords(t *testing.T) {
	const slow = 5 * time.Second
	for name, c := range map[string]struct {
		first error
		texts int
		close time.Duration
	}{"slow": {nil, 2, slow}, "failed": {errors.New("no"), 1, failedWords}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				calls := 0
				recogniser := speech(func(ctx context.Context) (string, error) {
					if calls++; calls == 1 {
						return "one", c.first
					}
					select {
					case <-time.After(slow):
						return "two", nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				})
				turns := &streamtest.Diarizer{OnPush: func(n int, _ []float32) []engine.Event { // 0.8 s of each second
					at := time.Duration(n) * 100 * time.Millisecond
					switch n % 10 {
					case 1:
						return []engine.Event{{Kind: engine.Start, At: at}}
					case 9:
						return []engine.Event{{Kind: engine.End, At: at}}
					}
					return nil
				}}
				client := s.open(turns, func(c *Config) { c.Recogniser, c.Unpaced = recogniser, true })
				client.chunks(10)
				time.Sleep(2 * time.Second) // the first turn was recognised, or failed
				if n := s.counters.Words.Recognised.Load() + s.counters.Words.Failed.Load(); n != 1 {
					t.Errorf("%d turns are counted while the stream goes on", n)
				}
				client.chunks(10)
				time.Sleep(time.Millisecond)
				client.endOfStream()
				began := time.Now()
				if code, _ := client.end(); code != 1000 {
					t.Errorf("code %d", code)
				}
				texts := 0
				for _, e := range client.received() {
					if e.Type == protocol.TypeText {
						texts++
					}
				}
				if took := time.Since(began); texts != c.texts || took > c.close+time.Second {
					t.Errorf("closed after %s with %d texts", took, texts)
				}
			})
		})
	}
}
