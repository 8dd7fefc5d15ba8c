package store

import (
	"context"
	"errors"
	"testing"
)

// Whoever is thought dead cannot write behind the end that others have put to
// its events.
func TestAmendedJournalIsClosedToItsWriter(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		if err := s.Append(ctx, "x", 0, [][]byte{[]byte("1"), []byte("2")}); err != nil {
			t.Fatal(err)
		}
		end := func(kept [][]byte) ([][]byte, error) {
			if len(kept) == 2 {
				return [][]byte{[]byte("end")}, nil
			}
			return nil, nil // it has an end
		}
		for range 2 {
			if err := s.Amend(ctx, "x", end); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Append(ctx, "x", 2, [][]byte{[]byte("3")}); !errors.Is(err, ErrConflict) {
			t.Errorf("got %v", err)
		}
		if got, err := s.Messages(ctx, "x"); err != nil || len(got) != 3 || string(got[2]) != "end" {
			t.Errorf("%q %v", got, err)
		}
	})
}
