package stream

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol/testkit"
)

// Lost responses neither lose events nor store them twice.
func TestJournalSurvivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.setFail("append")
		j := newJournal(m, testID, new(atomic.Int64), discard)
		go j.run()
		j.add([]byte("0"))
		synctest.Wait()
		for i := 1; i < 2000; i++ { // more than a batch, while the first one fails
			j.add(fmt.Append(nil, i))
		}
		time.Sleep(10*time.Second + time.Millisecond)
		testkit.Equal(t, m.count("append"), 21, "attempts in 10 s")
		m.setFail()
		j.finish(endOfStream, time.Now())
		<-j.done
		all := m.stored(testID)
		if len(all) != 2000 {
			t.Fatalf("%d events", len(all))
		}
		for i, text := range all {
			if text != fmt.Sprint(i) {
				t.Fatalf("event %d is %s", i, text)
			}
		}
	})
}

// Texts that wait together can be larger than a message of NATS may be.
func TestJournalDividesLargeEvents(t *testing.T) {
	s := testkit.Must(store.Open(context.Background(), store.Options{}))(t)
	defer func() { _ = s.Close() }()
	var want [][]byte
	j := newJournal(s, testID, new(atomic.Int64), discard)
	for i := range 30 {
		want = append(want, fmt.Appendf(nil, "%d %s", i, strings.Repeat("x", 100<<10)))
		j.add(want[i])
	}
	j.finish(endOfStream, time.Now())
	go j.run()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Timeout)
	defer cancel()
	waitFor(ctx, j.done)
	if rest := j.handOver(); rest != nil {
		t.Fatalf("%d events wait", len(rest.Events))
	}
	if got, err := s.Messages(t.Context(), testID); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%d events are stored, %v", len(got), err)
	}
}

// Events beyond the bound are counted. A stream without all of its events is not done, whether
// the store or the outbox takes its end.
func TestJournalCountsLostEvents(t *testing.T) {
	for _, returns := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			m.begin(testID)
			m.setFail("append")
			j := newJournal(m, testID, new(atomic.Int64), discard)
			go j.run()
			for range maxWaiting + 7 {
				j.add([]byte("x"))
			}
			testkit.Equal(t, j.losses.Load(), 7, "events lost before the end")
			j.finish(endOfStream, time.Now())
			time.Sleep(50 * time.Millisecond)
			if len(j.waiting) != maxWaiting {
				t.Fatalf("%d events wait", len(j.waiting))
			}
			if returns {
				m.setFail()
				<-j.done
				if rec := m.record(testID); rec.Status != store.Failed || rec.Cause != causeEventsLost || j.lost != 7 || j.handOver() != nil {
					t.Errorf("%d events are lost, and the record is %+v", j.lost, rec)
				}
			} else if p := j.handOver(); p.Status != store.Failed || p.Cause != causeEventsLost || len(p.Events) != maxWaiting || j.lost != 7 {
				t.Errorf("%d events are handed over, %d are lost, and the status is %s", len(p.Events), j.lost, p.Status)
			}
		})
	}
}

// A long stream renews its record, and publishes its progress.
func TestJournalRenewsAndPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		j := newJournal(m, testID, new(atomic.Int64), discard)
		go j.run()
		j.received.Store(int64(time.Second))
		time.Sleep(3*time.Hour + time.Second)
		m.setFail("renew") // is logged only
		time.Sleep(time.Hour)
		synctest.Wait() // for the message of this moment
		testkit.Equal(t, m.count("renew"), 4, "renewals in 4 h")
		if n := m.count("publish progress"); n < 4*3600*2-2 || n > 4*3600*2+4 || !reflect.DeepEqual(m.progress[0], store.Progress{Received: time.Second}) {
			t.Errorf("%d progress messages, the first one %+v", n, m.progress[0])
		}
		for range maxErrors {
			j.addError("x")
		}
		full, before := !j.addError("x"), m.count("publish progress")
		time.Sleep(2 * progressInterval)
		synctest.Wait()
		if p := m.progress[before:]; !full || len(p[0].Errors) != maxErrors || len(p[1].Errors) != 0 {
			t.Errorf("full is %v, the error messages are published as %+v", full, p)
		}
		j.finish(endOfStream, time.Now())
		<-j.done
	})
}

// silentRecords are records whose renewal gets no response.
type silentRecords struct{ *memory }

func (silentRecords) Renew(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// A renewal without a response delays events by the time of one call.
func TestJournalWithoutResponseToARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		j := newJournal(silentRecords{m}, testID, new(atomic.Int64), discard)
		go j.run()
		time.Sleep(renewInterval + time.Second)
		j.add([]byte("x"))
		time.Sleep(storeTimeout)
		testkit.Equal(t, len(m.stored(testID)), 1, "events are stored")
		j.cancel()
		<-j.done
	})
}
