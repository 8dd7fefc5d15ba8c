//go:build unix

package localserver

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/apikeys"
	"hubbub/protocol"
)

// TestClusterOfJobs kills the node that runs a job: another one takes the job, completes
// it once, and calls its webhook.
func TestClusterOfJobs(t *testing.T) {
	nats := natsCluster(t)
	dir := t.TempDir()
	line, kill := process(t, dir, childNATS+"="+nats[0].url)
	first := clientOfProcess(t, dir, line)
	first.upload("long", slowed(wav(make([]float32, 6*60*16000)), 2))
	url, calls := receiver(t)
	id := first.submit("diarize", fmt.Sprintf(`{"url":"media://long","webhook":%q}`, url)).JobID
	var body string
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the last status before the kill: ", body)
		}
	})
	eventually(t, "a running job", func() bool {
		body = string(first.do("GET", "/v1/jobs/"+id, testKey, nil).body)
		if strings.Contains(body, `"status":"succeeded"`) {
			t.Fatal("the job ended before it was seen running")
		}
		return strings.Contains(body, `"status":"running"`)
	})
	kill()
	second := serve(t, func(o *setup) { o.NATS, o.WebhookTo = nats[1].url, []string{"127.0.0.1"} })
	third := serve(t, func(o *setup) { o.NATS, o.WebhookTo = nats[2].url, []string{"127.0.0.1"} })
	// Meanwhile the others take other jobs.
	if status, body := third.jobEnd(third.submit("diarize", `{"url":"media://gone"}`).JobID); status.Status != "failed" {
		t.Error(body)
	}
	if status, body := second.jobEnd(id); status.Status != "succeeded" {
		t.Error(body)
	}
	if c := second.webhook(calls); !strings.HasPrefix(c.body, fmt.Sprintf(`{"jobId":%q,"status":"succeeded",`, id)) {
		t.Error(c.body)
	}
	rec, _, err := second.store.Job(t.Context(), apikeys.DefaultAccount, id, time.Now())
	if err != nil || rec.Attempts != 2 {
		t.Errorf("%+v %v", rec, err)
	}
	if n := second.jobs.Counters.Succeeded.Load() + third.jobs.Counters.Succeeded.Load(); n != 1 {
		t.Errorf("completed %d times", n)
	}
	for len(calls) > 0 { // once more is allowed, of the same job
		if c := <-calls; !strings.Contains(c.body, id) {
			t.Error(c.body)
		}
	}
}

// slowed is a file of wav that says it has a lower sample rate: as many bytes are
// that many times as much audio.
func slowed(file []byte, times uint32) []byte {
	binary.LittleEndian.PutUint32(file[24:], protocol.SampleRate/times)
	return file
}
