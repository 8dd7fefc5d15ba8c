package localserver

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// askFor requests an address for a media location.
func (h *host) askFor(op, location string) reply {
	h.t.Helper()
	return h.do("POST", "/v1/media/"+op, testKey, strings.NewReader(fmt.Sprintf(`{"url":%q}`, location)))
}

// ask returns an address for a media location.
func (h *host) ask(op, location string) string {
	h.t.Helper()
	return decoded[protocol.MediaLocation](h.t, h.askFor(op, location), 201).URL
}

// at sends a request to an address, without credentials.
func (h *host) at(method, address string, body io.Reader, headers ...string) reply {
	h.t.Helper()
	r := testkit.Must(http.NewRequest(method, address, body))(h.t)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return h.send(r)
}

func (h *host) put(location, body string) {
	h.t.Helper()
	if res := h.at("PUT", h.ask("input", location), strings.NewReader(body)); res.StatusCode != 200 {
		h.t.Fatalf("put %s: %d %s", location, res.StatusCode, res.body)
	}
}

func (h *host) get(location string) string {
	h.t.Helper()
	res := h.at("GET", h.ask("output", location), nil)
	if res.StatusCode != 200 {
		h.t.Fatalf("get %s: %d %s", location, res.StatusCode, res.body)
	}
	return string(res.body)
}

// Bodies that contract rules do not send.
func TestMediaThereAndBack(t *testing.T) {
	t.Parallel()
	h := serve(t)
	big := strings.Repeat("0123456789abcdef", 1<<16) // four chunks
	for location, body := range map[string]string{"media://big": big, "media://empty": "", "media://live": "not below", "media://./live/x": "nor this"} {
		h.put(location, body)
		if got := h.get(location); got != body {
			t.Errorf("%s: %d bytes in, %d out, or others", location, len(body), len(got))
		}
	}
	chunked := io.MultiReader(strings.NewReader("in "), strings.NewReader("pieces"))
	h.at("PUT", h.ask("input", "media://x"), chunked, "Content-Type", "audio/wav").hasStatus(t, "chunked", 200)
	testkit.Equal(t, h.get("media://x"), "in pieces", "x holds")
}

// What is below media://live/ is the service's.
func TestLocationsOfTheService(t *testing.T) {
	t.Parallel()
	h := serve(t)
	for _, location := range []string{"media://live/x", "media://live/", "media://live//x"} {
		h.askFor("input", location).invalid(t, location, "url")
	}
	for _, location := range []string{"media://live/", "media://live/x/turns.rttm", "media://live//turns.rttm", "media://live/x/audio.wav", "media://live/a/b/turns.json"} {
		h.askFor("output", location).apiError(t, 404)
	}
}

func TestMediaRanges(t *testing.T) {
	t.Parallel()
	h := serve(t)
	h.put("media://x", "0123456789")
	address := h.ask("output", "media://x")
	whole := h.at("GET", address, nil)
	tag := whole.Header.Get("ETag")
	for name, want := range map[string]string{"Accept-Ranges": "bytes", "Content-Type": "application/octet-stream",
		"X-Content-Type-Options": "nosniff", "Content-Disposition": "attachment", "Content-Length": "10", "Cache-Control": "private, no-store"} {
		testkit.Equal(t, whole.Header.Get(name), want, name)
	}
	for _, c := range []struct {
		header, value string
		status        int
		body          string
	}{
		{"Range", "bytes=2-4", 206, "234"}, {"Range", "bytes=7-", 206, "789"}, {"Range", "bytes=-2", 206, "89"},
		{"Range", "bytes=0-99", 206, "0123456789"}, {"Range", "seconds=1-2", 200, "0123456789"}, {"If-None-Match", tag, 304, ""}, {"If-None-Match", `"other"`, 200, "0123456789"},
	} {
		if res := h.at("GET", address, nil, c.header, c.value); res.StatusCode != c.status || string(res.body) != c.body {
			t.Errorf("%s %s: %d %q", c.header, c.value, res.StatusCode, res.body)
		}
	}
	if res := h.at("GET", address, nil, "Range", "bytes=1-2,5-6"); res.StatusCode != 206 || !strings.Contains(string(res.body), "\r\n\r\n12\r\n") {
		t.Errorf("two ranges: %d %q", res.StatusCode, res.body)
	}
	for _, none := range []string{"bytes=10-", "bytes=x"} {
		h.at("GET", address, nil, "Range", none).apiError(t, 416)
	}
	h.at("GET", address, nil, "If-Match", `"other"`).apiError(t, 412)
	if res := h.at("HEAD", address, nil); res.StatusCode != 200 || res.ContentLength != 10 || len(res.body) != 0 || res.Header.Get("ETag") != tag {
		t.Errorf("HEAD: %d %v", res.StatusCode, res.Header)
	}
}

// An address is valid for one object, one method and a limited time, and any
// change of a single character invalidates it.
func TestMediaAddressIsValidForOneThing(t *testing.T) {
	t.Parallel()
	clock := newClock()
	h := serve(t, clock.use)
	h.put("media://x", "body")
	in, out := h.ask("input", "media://x"), h.ask("output", "media://x")
	denied := h.at("GET", in, nil).apiError(t, 403)
	for name, res := range map[string]reply{
		"PUT on the address of a GET": h.at("PUT", out, strings.NewReader("no")),
		"a stranger's":                h.at("GET", out[:strings.LastIndex(out, "/")+1]+"AAAA", nil),
		"nothing":                     h.at("GET", out[:strings.LastIndex(out, "/")+1]+"%20", nil),
		"very long":                   h.at("GET", out+strings.Repeat("A", 1500), nil),
		"longer":                      h.at("GET", out+"A", nil),
	} {
		if e := res.apiError(t, 403); e.Message != denied.Message {
			t.Errorf("%s: %q differs from %q", name, e.Message, denied.Message)
		}
	}
	h.at("GET", out+strings.Repeat("A", 5000), nil).apiError(t, 414)
	sealed := out[strings.LastIndex(out, "/")+1:]
	for i := range sealed {
		for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") {
			changed := []byte(sealed)
			if changed[i] == c {
				continue
			}
			changed[i] = c
			if g, ok := h.signer.verify(string(changed), "GET", clock.now()); ok {
				t.Fatalf("with character %d as %c it is valid for %+v", i, c, g)
			}
		}
	}
	other := signer{key: bytes.Repeat([]byte{1}, 32)}
	if _, ok := other.verify(sealed, "GET", clock.now()); ok {
		t.Error("another server accepts it")
	}
	h.at("POST", out, nil).hasStatus(t, "POST", 405)
	clock.move(mediaAddressTTL - time.Second)
	h.at("GET", out, nil).hasStatus(t, "shortly before it expires", 200)
	clock.move(time.Second)
	h.at("GET", out, nil).apiError(t, 403)
	h.at("PUT", in, strings.NewReader("late")).apiError(t, 403)
	testkit.Equal(t, h.get("media://x"), "body", "afterwards x holds")
}

// A complete upload uses its address up, an incomplete one does not. A client that did not get
// the response of an upload sends the same object to the same address again, and gets the
// response, while the object is stored. Package store tests uploads that race.
func TestUploadAddressIsUsedOnce(t *testing.T) {
	t.Parallel()
	h := serve(t)
	address := h.ask("input", "media://x")
	if other := h.ask("input", "media://x"); other == address {
		t.Fatal("two requests got the same address")
	}
	u := testkit.Must(url.Parse(address))(t)
	h.abortedUpload(u).hasStatus(t, "half an upload", 400)
	h.at("PUT", address, strings.NewReader("rest"), "Content-Range", "bytes 4-7/8").hasStatus(t, "a part of an object", 400)
	h.at("PUT", address, strings.NewReader("rest"), "If-None-Match", "*").hasStatus(t, "with a condition", 400)
	first := h.at("PUT", address, strings.NewReader("body"))
	first.hasStatus(t, "a whole object", 200)
	for name, body := range map[string]io.Reader{
		"with a length": strings.NewReader("body"),
		"chunked":       io.MultiReader(strings.NewReader("bo"), strings.NewReader("dy")),
	} {
		again := h.at("PUT", address, body)
		again.hasStatus(t, name, 200)
		if !bytes.Equal(again.body, first.body) {
			t.Errorf("%s: %s, the first time %s", name, again.body, first.body)
		}
	}
	for _, other := range []string{"again", "BODY"} {
		h.at("PUT", address, strings.NewReader(other)).apiError(t, 403)
	}
	testkit.Equal(t, h.get("media://x"), "body", "x holds")

	h.put("media://x", "other")
	h.at("PUT", address, strings.NewReader("body")).apiError(t, 403)
	testkit.Equal(t, h.get("media://x"), "other", "x holds")
	h.do("DELETE", "/v1/media?url=media://x", testKey, nil).hasStatus(t, "delete", 204)
	h.at("PUT", address, strings.NewReader("body")).apiError(t, 403)
}

// An upload is also repeated while the first attempt is being stored.
func TestUploadIsRepeatedMeanwhile(t *testing.T) {
	t.Parallel()
	h := serve(t)
	address := h.ask("input", "media://x")
	part := make([]byte, 8<<20) // more than a connection buffers
	_, _ = rand.Read(part)
	begin := func() (end func(rest string) reply) {
		in, out := io.Pipe()
		replies := make(chan reply, 1)
		go func() { replies <- h.at("PUT", address, in) }()
		_, _ = out.Write(part)
		return func(rest string) reply {
			_, _ = io.WriteString(out, rest)
			_ = out.Close()
			return <-replies
		}
	}
	first, again, other := begin(), begin(), begin()
	first("rest").hasStatus(t, "first", 200)
	again("rest").hasStatus(t, "again", 200)
	other("REST").apiError(t, 403)
	if got := h.get("media://x"); got != string(part)+"rest" {
		t.Errorf("x holds %d bytes", len(got))
	}
}

func TestMediaSizeLimit(t *testing.T) {
	t.Parallel()
	h := serve(t, func(o *setup) { o.MaxMedia = 1 << 20 })
	h.put("media://x", "earlier")
	fits := strings.Repeat("x", 1<<20)
	for name, body := range map[string]io.Reader{
		"with a length": strings.NewReader(fits + "x"),
		"chunked":       io.MultiReader(strings.NewReader(fits), strings.NewReader("x")),
		"much larger":   io.MultiReader(strings.NewReader(fits), strings.NewReader(fits), strings.NewReader(fits)),
	} {
		t.Run(name, func(t *testing.T) {
			h.at("PUT", h.ask("input", "media://x"), body).apiError(t, 413)
			if got := h.get("media://x"); got != "earlier" {
				t.Errorf("x holds %d bytes", len(got))
			}
		})
	}
	h.put("media://x", fits)
	testkit.Equal(t, h.get("media://x"), fits, "the largest object is not stored")
}

// Media can be read for at least 24 hours, and not after 48.
func TestMediaRetention(t *testing.T) {
	t.Parallel()
	clock := newClock()
	h := serve(t, clock.use)
	h.put("media://x", "body")
	s := h.open()
	s.chunks(2)
	s.end()
	s.rest()
	h.becomes(s.id, protocol.StatusDone)
	for _, location := range []string{"media://x", "media://live/" + s.id + "/turns.rttm"} {
		if h.get(location) == "" {
			t.Errorf("%s is empty", location)
		}
	}
	clock.move(24*time.Hour + time.Minute)
	late := h.ask("output", "media://x")
	for _, location := range []string{"media://x", "media://live/" + s.id + "/turns.json"} {
		h.get(location)
	}
	clock.move(24*time.Hour - 2*time.Minute)
	h.at("GET", late, nil).apiError(t, 403)
	for _, location := range []string{"media://x", "media://live/" + s.id + "/turns.rttm"} {
		h.askFor("output", location).apiError(t, 404)
	}
	// An address that is still valid for an object that has expired.
	sealed := h.signer.sign("GET", "default", "x", clock.now().Add(time.Hour))
	h.do("GET", mediaPath+sealed, "", nil).apiError(t, 404)
}

// Contract rules test the turns of a stream that is done. Here are the bytes and types of its files, and what there
// is not: results of a stream that runs or is lost, and audio unless it is kept.
func TestResultsOfAStream(t *testing.T) {
	t.Parallel()
	h := serve(t)
	none := func(id, file string) {
		t.Helper()
		h.askFor("output", "media://live/"+id+"/"+file).apiError(t, 404)
	}
	run := func(chunks int) string {
		t.Helper()
		s := h.open()
		s.chunks(chunks)
		none(s.id, "turns.rttm")
		s.end()
		s.rest()
		h.becomes(s.id, protocol.StatusDone)
		return s.id
	}
	id, silent := run(3), run(0)
	for location, want := range map[string]string{
		id + "/turns.rttm":     "text/plain; charset=utf-8 SPEAKER " + id + " 1 0.020 0.280 <NA> <NA> SPEAKER_00 <NA> <NA>\n",
		id + "/turns.json":     `application/json [{"speaker":"SPEAKER_00","start":0.02,"end":0.3}]` + "\n",
		silent + "/turns.json": "application/json []\n",
	} {
		res := h.at("GET", h.ask("output", "media://live/"+location), nil)
		testkit.Equal(t, res.Header.Get("Content-Type")+" "+string(res.body), want, location, "is")
	}
	none(id, "audio.wav")
	lost := h.open()
	lost.chunks(1)
	_ = lost.Close()
	h.becomes(lost.id, protocol.StatusError)
	none(lost.id, "turns.rttm")
}

// A grant has an end and is signed with the method of the service.
func TestSignedGrantsAreVerified(t *testing.T) {
	t.Parallel()
	s := signer{key: []byte("0123456789abcdef0123456789abcdef")}
	now := time.Unix(1_700_000_000, 0)
	for _, other := range []jwt.SigningMethod{jwt.SigningMethodNone, jwt.SigningMethodHS512} {
		var key any = s.key
		if other == jwt.SigningMethodNone {
			key = jwt.UnsafeAllowNoneSignatureType
		}
		text, err := jwt.NewWithClaims(other, grant{jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(now.Add(time.Hour))}, "GET", "x"}).SignedString(key)
		testkit.NoError(t, err)
		if _, ok := s.verify(text, "GET", now); ok {
			t.Errorf("%s is accepted", other.Alg())
		}
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, grant{Method: "GET", Name: "x"}).SignedString(s.key)
	if _, ok := s.verify(text, "GET", now); ok || err != nil {
		t.Errorf("a grant without an end is accepted (%v)", err)
	}
}

// abortedUpload sends half of an object and closes its side.
func (h *host) abortedUpload(u *url.URL) reply {
	h.t.Helper()
	conn := h.connect()
	_, _ = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 20\r\n\r\nhalf of it", u.Path, u.Host)
	conn.CloseWrite()
	return conn.response()
}
