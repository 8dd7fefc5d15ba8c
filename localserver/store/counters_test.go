package store

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

func TestCountersSlide(t *testing.T) {
	s := open(t, "")
	ctx := context.Background()
	take := func(key string, after time.Duration) Count {
		t.Helper()
		return testkit.Must(s.Take(ctx, key, noon.Add(after), 3, time.Minute))(t)
	}
	for i, c := range []struct {
		after time.Duration
		taken bool
		used  int
		reset time.Duration
	}{
		{0, true, 1, time.Minute}, {10 * time.Second, true, 2, time.Minute}, {59 * time.Second, true, 3, time.Minute},
		{59 * time.Second, false, 3, time.Minute},
		// No window has more than three, not even one across two minutes.
		{time.Minute, true, 3, 70 * time.Second},
		{61 * time.Second, false, 3, 70 * time.Second}, {70 * time.Second, true, 3, 119 * time.Second},
	} {
		got := take("k", c.after)
		if got.Taken != c.taken || got.Used != c.used || !got.Reset.Equal(noon.Add(c.reset)) {
			t.Errorf("%d: after %v %+v", i, c.after, got)
		}
	}
	if c := take("other", 0); !c.Taken || c.Used != 1 {
		t.Errorf("another key: %+v", c)
	}
}

func TestSecretIsGeneratedOnce(t *testing.T) {
	dir := t.TempDir()
	s := testkit.Must(Open(context.Background(), Options{Dir: dir}))(t)
	secrets := make([][]byte, 8)
	var all sync.WaitGroup
	for i := range secrets {
		all.Go(func() { secrets[i], _ = s.Secret(context.Background(), "x") })
	}
	all.Wait()
	testkit.NoError(t, s.Close())
	again, err := open(t, dir).Secret(context.Background(), "x")
	if err != nil || len(again) != 32 {
		t.Fatal(again, err)
	}
	for _, d := range secrets {
		if !bytes.Equal(d, again) {
			t.Error("two secrets of one name")
		}
	}
}

// A change is made again for the value of a write that came in between.
func TestChangeAfterAnotherWrite(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		var seen []string
		testkit.NoError(t, s.counters.change(t.Context(), "k", func(ctx context.Context, value []byte) ([]byte, error) {
			if seen = append(seen, string(value)); len(seen) == 1 {
				if err := s.counters.Put(ctx, "k", []byte("another")); err != nil {
					return nil, err
				}
			}
			return append(value, " and mine"...), nil
		}))
		entry := testkit.Must(s.counters.kv.Get(t.Context(), "k"))(t)
		if !slices.Equal(seen, []string{"", "another"}) || string(entry.Value()) != "another and mine" {
			t.Errorf("saw %q, wrote %q", seen, entry.Value())
		}
	})
}
