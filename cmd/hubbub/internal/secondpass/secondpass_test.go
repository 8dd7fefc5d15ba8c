package secondpass

import (
	"fmt"
	"testing"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/offline"
	"hubbub/protocol/testkit"
)

// TestJoinTracks: speakers of several tracks have numbers and voices of their own.
func TestJoinTracks(t *testing.T) {
	t.Parallel()
	tracks := func() []*offline.Result {
		return []*offline.Result{
			{},
			{Speakers: 2, Turns: []offline.Turn{{Speaker: 0, Start: 1, End: 2}, {Speaker: 1, Start: 5, End: 6}}, Exclusive: []offline.Turn{{Speaker: 1, Start: 5, End: 6}}, Embeddings: []clustering.TimedEmbedding{{Duration: 10}, {Duration: 11}}},
			{Speakers: 1, Turns: []offline.Turn{{Speaker: 0, Start: 3, End: 4}, {Speaker: 0, Start: 7, End: 8}}, Exclusive: []offline.Turn{{Speaker: 0, Start: 3, End: 4}}, Embeddings: []clustering.TimedEmbedding{{Duration: 20}}},
		}
	}
	for person, want := range map[bool]string{
		true:  "3 [{1 1 2} {2 3 4} {1 5 6} {2 7 8}] [{2 3 4} {1 5 6}] 0 10 20 map[SPEAKER_01:1 SPEAKER_02:2]",
		false: "3 [{0 1 2} {1 3 4} {2 5 6} {1 7 8}] [{1 3 4} {2 5 6}] 10 20 11 map[SPEAKER_00:1 SPEAKER_01:2 SPEAKER_02:1]",
	} {
		list := tracks()
		if person {
			list[1].Turns[1].Speaker, list[1].Exclusive[0].Speaker = 0, 0
		}
		all, of := joinTracks(list, person)
		got := fmt.Sprint(all.Speakers, " ", all.Turns, " ", all.Exclusive, " ")
		for _, v := range all.Embeddings {
			got += fmt.Sprint(v.Duration, " ")
		}
		testkit.Equal(t, got+fmt.Sprint(of), want, "person", person)
	}
}
