package inference

import (
	"math"
	"testing"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/enginetest"
)

// collect pushes samples in chunks and returns the last version of each multiscale
// embedding, in order, and how often they were computed. New ones must follow without gaps.
func collect(t *testing.T, s *Stream, x []float32) (list []clustering.MultiscaleEmbedding, computed int) {
	t.Helper()
	for at := 0; at < len(x); at += 1600 {
		w := s.Push(x[at:min(at+1600, len(x))], at+1600 >= len(x))
		if w == nil {
			continue
		}
		for _, e := range w.Multiscale {
			computed++
			switch i := e.Step / clustering.MultiscaleHop; {
			case e.Step%clustering.MultiscaleHop != 0 || i > len(list):
				t.Fatalf("a multiscale embedding at step %d after %d", e.Step, len(list))
			case i == len(list):
				list = append(list, e)
			default:
				list[i] = e
			}
		}
	}
	return list, computed
}

// TestMultiscale: live each multiscale embedding is computed twice, of a recording once,
// and what is known of it live in the end is nearly what the whole recording says.
func TestMultiscale(t *testing.T) {
	x := enginetest.Demo(t)[:20*16000]
	live, offline := New(3200), NewOffline(8000)
	a, twice := collect(t, live, x)
	b, once := collect(t, offline, x)
	steps := 20 * 25
	if want := (steps + clustering.MultiscaleHop - 1) / clustering.MultiscaleHop; len(a) != want || len(b) != want || twice != 2*want || once != want {
		t.Fatalf("%d multiscale embeddings in %d computations live, %d in %d of the recording; want %d", len(a), twice, len(b), once, want)
	}
	sum, n := 0.0, 0
	for i := range a {
		for scale := range a[i].Embeddings {
			x, y := &a[i].Embeddings[scale], &b[i].Embeddings[scale]
			for _, e := range []*clustering.Embedding{x, y} {
				if norm := e.Dot(e); norm != 0 && math.Abs(norm-1) > 1e-4 {
					t.Fatalf("an embedding of squared length %v", norm)
				}
			}
			if x.Dot(x) != 0 && y.Dot(y) != 0 {
				sum += x.Dot(y)
				n++
			}
		}
	}
	if n < len(a) || sum/float64(n) < 0.9 {
		t.Errorf("%d embeddings of both have a mean cosine of %.3f", n, sum/float64(n))
	}
}
