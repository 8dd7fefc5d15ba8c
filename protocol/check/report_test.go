package check

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// On a terminal the table stays within it, words whole, and says with colours
// what the words say.
func TestCheckTable(t *testing.T) {
	r := Report{Server: "https://diarization.example", Stages: []Stage{
		{Title: "name look-up", State: OK, Millis: 1, Seen: "diarization.example is 192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4"},
		{Title: "TLS", State: Failed, Millis: 20, Seen: "TLS 1.3, certificate for localhost by nobody (self-signed), 396 days left",
			Cause: "the certificate of diarization.example:443 is signed by an authority that this machine does not know",
			Next:  "Your own server: trust its certificate with --ca FILE. In the network of a company or a hotel, that name may be a proxy."},
		{Title: "key accepted", State: Skipped, Seen: "not tried: TLS failed"},
	}}
	var plain bytes.Buffer
	testkit.NoError(t, r.Table(&plain, Style{}))
	if strings.Contains(plain.String(), "\x1b") || strings.Count(plain.String(), "\n") != 7 {
		t.Errorf("%s", plain.String())
	}
	for _, width := range []int{60, 80, 100, 10} {
		var b bytes.Buffer
		testkit.NoError(t, r.Table(&b, Style{Width: width, Colours: true}))
		for line := range strings.Lines(b.String()) {
			if w := ansi.StringWidth(strings.TrimSuffix(line, "\n")); width >= 60 && w >= width {
				t.Errorf("%d cells in a terminal of %d: %q", w, width, line)
			}
		}
		words := strings.Fields(ansi.Strip(b.String()))
		if want := strings.Fields(plain.String()); strings.Join(words, " ") != strings.Join(want, " ") {
			t.Errorf("at %d cells the words are %q", width, words)
		}
		if !strings.Contains(b.String(), "\x1b[1;31mfailed") || !strings.Contains(b.String(), "\x1b[32mok") {
			t.Errorf("no colours: %q", b.String())
		}
	}
}

// A key that is a word of ours leaves what to do as it is; a real one is in no
// part of a report.
func TestCheckHidesKeys(t *testing.T) {
	bad := protocoltest.Service{Test: protocoltest.Respond(401, `{"requestId":"r","message":"wrong"}`)}
	fails(t, run(t, serve(t, bad), "wrong", testkit.Timeout, 2, nil), "key", "[redacted]", "it is missing, wrong, expired or revoked")
	r := run(t, serve(t, bad), testKey, testkit.Timeout, 2, nil)
	r.Stages[0].Next = "" // what is looked for is in the others
	fails(t, r, "key", "401", "API key")
}

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1)*time.Millisecond)
	}
	for _, c := range []struct {
		of   []time.Duration
		p    int
		want float64
	}{{[]time.Duration{7 * time.Millisecond}, 50, 7}, {hundred, 50, 50}, {hundred, 99, 99}, {hundred[:3], 50, 2}, {hundred[:3], 99, 3}} {
		testkit.Equal(t, percentile(c.of, c.p), c.want, "p", c.p, "of", len(c.of))
	}
}
