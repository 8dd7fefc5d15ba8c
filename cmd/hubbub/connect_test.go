package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/protocol/testkit"
)

// endingServer is a server whose end is an error, or nil after a shutdown.
type endingServer struct{ end chan error }

func (s endingServer) Wait() error { return <-s.end }

// The end of the built-in server ends the session and is its error; a shutdown
// is not.
func TestEndOfTheBuiltInServer(t *testing.T) {
	t.Parallel()
	for _, want := range []error{nil, errors.New("the store is lost")} {
		server := endingServer{make(chan error, 1)}
		ctx, failed := context.WithCancel(t.Context())
		ended := awaitEnd(server, failed)
		server.end <- want
		testkit.Equal(t, <-ended, want)
		if want != nil {
			<-ctx.Done()
		} else if ctx.Err() != nil {
			t.Error("a shutdown ends the session")
		}
		failed()
	}
}

// What a slow connection says comes before its end, or not at all: afterwards there may be a screen.
func TestNoticeOfASlowConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		a := &App{Stderr: &stderr}
		connected := a.connecting(&serviceClient{name: "https://localhost:1"})
		time.Sleep(slowConnection)
		a.noticeWait(errors.New("busy"), 0) // at the same time
		connected()
		before := stderr.String()
		time.Sleep(2 * slowConnection)
		if after := stderr.String(); after != before || !strings.Contains(before, "busy") {
			t.Errorf("before the end %q, after it %q", before, after)
		}
	})
}
