package conform

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

var watchRules = []Rule{
	{Name: "watch/messages", Expected: "a watcher receives the starts and ends of a stream byte for byte and in order, then close 1000 with the text done", Section: "Watching", Chosen: true, check: func(p *prober) string {
		w := watchedSpeech.of(p)
		n := sameMessages(w.seen, turnMessages(w.sender.messages))
		if w.end.code != websocket.CloseNormalClosure || w.end.text != protocol.StatusDone {
			differs("after the stream was done, %s", w.end)
		}
		return fmt.Sprintf("%d messages, then close 1000 %q", n, w.end.text)
	}},
	{Name: "watch/state", Expected: "between them it receives the state of the stream: its status, and a timestamp that is not later than the audio received", Section: "Watch messages", Chosen: true, check: func(p *prober) string {
		w := watchedSpeech.of(p)
		n := 0
		for _, m := range w.seen {
			if m.Type != protocol.TypeStreamState {
				continue
			}
			if m.State == nil || m.State.Status == "" || m.State.Timestamp > w.sender.sent.Seconds() {
				differs("%s", m.line())
			}
			n++
		}
		if n == 0 {
			differs("the state of the stream was not sent")
		}
		return fmt.Sprintf("%d states", n)
	}},
	{Name: "watch/from", Expected: "after its end a stream can be watched as well; from=N skips its first N messages", Section: "Watch messages", Chosen: true, check: func(p *prober) string {
		w := watchedSpeech.of(p)
		all := turnMessages(w.sender.messages)
		if len(all) == 0 {
			skipped("there were no events: see events/speech")
		}
		again := p.watch(w.sender.id, "?from=1")
		defer again.close()
		again.waitEnd(p.ctx, promptly+p.Slack)
		seen, _ := again.received()
		return fmt.Sprintf("with from=1 %d of %d messages", sameMessages(seen, all[1:]), len(all))
	}},
	{Name: "watch/handshake", Expected: "an unknown id gets 404, an invalid from or words 400, a request that is no WebSocket handshake 426, each with its body", Section: "Watch handshake", Chosen: true, check: func(p *prober) string {
		id := watchedSpeech.of(p).sender.id
		for _, query := range []string{"?from=-1", "?from=x", "?words=yes"} {
			_, r := p.watchHandshake(id, query, p.Key)
			r.expectInvalid()
		}
		_, r := p.watchHandshake(unknownID, "", p.Key)
		r.expectAPIError(http.StatusNotFound)
		return "404, 400 and " + p.expectError(http.StatusUpgradeRequired, get("/v1/live/"+id+"/events"))
	}},
	{Name: "watch/foreign", Expected: "another account cannot watch a stream: 404, an ApiError", Section: "Watch handshake", Chosen: true, check: func(p *prober) string {
		p.other() // or the rule is skipped
		_, r := p.watchHandshake(watchedSpeech.of(p).sender.id, "", p.OtherKey)
		r.expectAPIError(http.StatusNotFound)
		return "404"
	}},
}

var resumeRules = []Rule{
	{Name: "resume/resumed", Expected: "a stream that resumes another one of the account has resumed, which is true", Section: "Resume a stream", Chosen: true, step: conversation, check: func(p *prober) string {
		resumedSpeech.of(p)
		return "resumed"
	}},
	{Name: "resume/labels", Expected: "it gives the same people the same labels", Section: "Resume a stream", Chosen: true, step: conversation, check: func(p *prober) string {
		r := resumedSpeech.of(p)
		if r.want == "" {
			skipped("the conversation has no second speaker with a turn of 2 s")
		}
		turns := turnsOf(r.exchange)
		if len(turns) == 0 || turns[0].Speaker != r.want {
			differs("speech of %s has the turns %v", protocol.Label(r.want), turns)
		}
		return protocol.Label(r.want)
	}},
	{Name: "resume/status", Expected: "the status of the earlier stream gets resumedBy, the id of the stream that has resumed it", Section: "Resume a stream", Chosen: true, step: conversation, check: func(p *prober) string {
		r := resumedSpeech.of(p)
		if by := p.status(conversation.of(p).id)["resumedBy"]; !sameJSON(string(by), fmt.Sprintf("%q", r.id)) {
			differs("resumedBy is %s, and %s has resumed it", by, r.id)
		}
		return r.id
	}},
	{Name: "resume/resumable", Expected: "a stream that was lost has resumable, which is true, and one that is done does not have it", Section: "Resume a stream", Chosen: true, step: conversation, check: func(p *prober) string {
		resumedSpeech.of(p) // resuming may not be offered
		s := p.open()
		_ = s.chunk(make([]float32, protocol.ChunkSamples))
		s.close()
		lost, done := p.finalStatus(s.id)["resumable"], conversation.of(p).after["resumable"]
		if string(lost) != "true" || done != nil {
			differs("resumable is %q after the connection was lost, and %q after end_of_stream", lost, done)
		}
		return "resumable"
	}},
	{Name: "resume/unknown", Expected: "a stream that resumes none, or an unknown one, does not have resumed; this is not an error", Section: "Resume a stream", Chosen: true, check: func(p *prober) string {
		for _, body := range []string{"{}", resume(unknownID)} {
			p.expectNew(post("/v1/live", body))
		}
		return "not resumed"
	}},
	{Name: "resume/foreign", Expected: "a stream of another account is not resumed", Section: "Resume a stream", Chosen: true, step: conversation, check: func(p *prober) string {
		p.expectNew(post("/v1/live", resume(conversation.of(p).id)).with(p.other()))
		return "not resumed"
	}},
}

// watched is a stream that was watched from its opening to its end.
type watched struct {
	sender *exchange
	seen   []message // by the watcher
	end    ending
}

// watchedSpeech is a stream and its watcher while audio is sent: a second of silence in real
// time, as the state is sent twice a second, and some seconds of speech at once.
var watchedSpeech = share(func(p *prober) *watched {
	var watcher *stream
	defer func() {
		if watcher != nil {
			watcher.close()
		}
	}()
	sender := p.excerpt(10, func(s *stream) error {
		if watcher == nil {
			watcher = p.watch(s.id, "")
		}
		p.sleep(protocol.ChunkDuration)
		return s.chunk(make([]float32, protocol.ChunkSamples))
	})
	watcher.waitEnd(p.ctx, promptly+p.Slack)
	w := &watched{sender: sender}
	w.seen, w.end = watcher.received()
	return w
})

// watch opens a watcher with the key.
func (p *prober) watch(id, query string) *stream {
	conn, r := p.watchHandshake(id, query, p.Key)
	if r.missing() {
		notOffered("%s", r)
	}
	r.expect(http.StatusSwitchingProtocols)
	return newStream(id, conn)
}

// watchHandshake opens a watcher, with a key or without; without a connection it was refused.
func (p *prober) watchHandshake(id, query, key string) (*websocket.Conn, *response) {
	address := "ws" + strings.TrimPrefix(p.Client.BaseURL(), "http") + "/v1/live/" + id + "/events" + query
	head := http.Header{}
	if key != "" {
		head.Set("Authorization", "Bearer "+key)
	}
	conn, r := p.upgrade(address, head)
	r.request = "the handshake of a watcher " + query
	return conn, r
}

// sameMessages requires that the starts and ends among messages are exactly those of
// the sender, and returns how many there are.
func sameMessages(seen, sent []message) int {
	seen = turnMessages(seen)
	for i := range max(len(seen), len(sent)) {
		switch {
		case i >= len(seen):
			differs("the watcher did not receive %s", sent[i].line())
		case i >= len(sent):
			differs("the sender did not receive %s", seen[i].line())
		case string(seen[i].Raw) != string(sent[i].Raw):
			differs("the watcher received %s instead of %s", seen[i].line(), sent[i].line())
		}
	}
	return len(seen)
}

// resumed is a stream that has resumed the conversation.
type resumed struct {
	*exchange
	want string // the label of who speaks in it
}

// resume is the body that creates a stream that resumes another one.
func resume(id string) string { return fmt.Sprintf(`{"resume":%q}`, id) }

// resumedSpeech resumes the conversation with a turn of a speaker who was not its first.
var resumedSpeech = share(func(p *prober) *resumed {
	e := conversation.of(p)
	creation := p.do(post("/v1/live", resume(e.id)))
	creation.expectSuccess()
	switch is := creation.object()["resumed"]; {
	case is == nil:
		notOffered("%s", creation)
	case string(is) != "true":
		differs("%s", creation)
	}
	s := p.dial(creation.live())
	defer s.close()
	r := &resumed{}
	for _, t := range turnsOf(e) {
		if t.Speaker != protocol.SpeakerLabel(0) && t.End-t.Start >= 2 {
			r.want = t.Speaker
			p.burst(s, int(t.Start*10))
			break
		}
	}
	r.exchange = p.finish(s)
	return r
})

// expectNew requires that a stream is created which does not resume another one.
func (p *prober) expectNew(a request) {
	r := p.do(a)
	r.expectSuccess()
	if is := r.object()["resumed"]; is != nil && string(is) != "false" {
		differs("%s", r)
	}
}
