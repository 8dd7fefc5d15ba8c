package words

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"hubbub/protocol"
)

// wordJSON is a word of an endpoint.
type wordJSON struct {
	Word  string   `json:"word"`
	Start *float64 `json:"start"`
	End   *float64 `json:"end"`
}

// wordsIn finds the words in a response with response_format verbose_json: OpenAI's
// endpoint has them at the top, others in the segments.
func wordsIn(body []byte) (list []wordJSON) {
	var response struct {
		Words    json.RawMessage `json:"words"`
		Segments json.RawMessage `json:"segments"`
	}
	if json.Unmarshal(body, &response) != nil {
		return nil
	}
	if json.Unmarshal(response.Words, &list) == nil && len(list) > 0 {
		return list
	}
	var segments []struct {
		Words []wordJSON `json:"words"`
	}
	if json.Unmarshal(response.Segments, &segments) != nil {
		return nil
	}
	list = nil
	for _, s := range segments {
		list = append(list, s.Words...)
	}
	return list
}

// checkWords returns words whose times are those of audio of a length in seconds,
// and nil if anything about them is wrong. Some recognisers deliver pieces of words:
// where spaces begin words, a piece without one continues the word before.
func checkWords(list []wordJSON, length float64) (words []Word) {
	spaced := false
	for _, w := range list {
		spaced = spaced || strings.HasPrefix(w.Word, " ")
	}
	last := 0.0
	for _, w := range list {
		text := clean(w.Word)
		switch {
		case strings.ContainsRune(w.Word, utf8.RuneError), w.Start == nil, w.End == nil,
			!(*w.Start >= last && *w.End >= *w.Start && *w.End <= length+1):
			return nil
		case text == "":
			continue
		}
		last = *w.Start
		if spaced && len(words) > 0 && !strings.HasPrefix(w.Word, " ") {
			words[len(words)-1].Text += text
			words[len(words)-1].End = *w.End
			continue
		}
		words = append(words, Word{text, *w.Start, *w.End})
	}
	return words
}

// divide divides a stretch of time among the words of a text, each according to its
// number of characters.
func divide(text string, start, end float64) (words []Word) {
	fields := strings.Fields(text)
	all := 0
	for _, f := range fields {
		all += utf8.RuneCountInString(f)
	}
	at := start
	for _, f := range fields {
		next := at + (end-start)*float64(utf8.RuneCountInString(f))/float64(all)
		words = append(words, Word{f, at, next})
		at = next
	}
	return words
}

// place moves words by an offset in seconds into a turn, and gives them its speaker.
func place(words []Word, offset float64, t protocol.Turn) (placed []protocol.Turn) {
	const shortest = 0.001
	for _, w := range words {
		start := max(t.Start, min(w.Start+offset, t.End-shortest))
		end := max(start+shortest, min(w.End+offset, t.End))
		placed = append(placed, protocol.Turn{Speaker: t.Speaker, Start: protocol.Round1ms(start), End: protocol.Round1ms(end), Text: w.Text})
	}
	return placed
}
