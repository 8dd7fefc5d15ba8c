// Package localserver is the built-in diarization service: the HTTP operations
// and audio streams of the specification, over TLS. A program embeds it with
// one call of Start.
//
// Requests pass middleware.go, router.go and limits.go, and reach the
// handlers in live.go (create a stream, its status), handshake.go (open it, for
// one request at a time: claims.go), watch.go (watch it), media.go (signed addresses
// of objects), transfer.go (upload and download), results.go (files
// generated from a stream's events), and jobrequests.go (jobs). What a handler
// returns as an error, respond.go responds with. The package stream runs what the
// handshake opens.
//
// On a store that several nodes share, membership.go ends the streams of dead nodes,
// which the package lease detects.
//
// The following holds at every moment:
//
//   - A token opens one stream, once. A handshake whose outcome is unknown does
//     not use it up: it is withdrawn.
//   - The status of a stream goes from created to running to done or error and
//     never back, except that a withdrawn stream reads created again.
//   - No request passes that is not counted, and no stream opens beyond its
//     account's quota, on any node. If the store does not respond, both
//     fail with 503.
package localserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/apikeys"
	"hubbub/localserver/certificate"
	"hubbub/localserver/faults"
	"hubbub/localserver/jobs"
	"hubbub/localserver/lease"
	"hubbub/localserver/limits"
	"hubbub/localserver/outbound"
	"hubbub/localserver/store"
	"hubbub/localserver/stream"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/recovered"
)

const (
	// lostTimeout is how long streams have to close when the store is lost.
	lostTimeout = 5 * time.Second
	// storeTimeout bounds one call of the store.
	storeTimeout = 5 * time.Second
	// outboxTimeout is how long a server that stops tries to empty its outbox,
	// and outboxReserve what it leaves of its time to the rest of stopping.
	outboxTimeout = 20 * time.Second
	outboxReserve = 2 * time.Second
)

// records is the part of the store with the records of streams.
type records interface {
	Create(ctx context.Context, s store.Stream, token string) error
	Get(ctx context.Context, id string) (store.Stream, error)
	Begin(ctx context.Context, id, token string, by store.Claim, at time.Time) error
	Withdraw(ctx context.Context, id, attempt string) error
	Finish(ctx context.Context, id string, outcome store.Status, at time.Time, cause string) error
	Resumed(ctx context.Context, id, by string) error
}

// Server is a running service.
type Server struct {
	options Options
	log     *slog.Logger
	now     func() time.Time
	node    string                   // identifies this process, as the one that runs a stream
	public  *url.URL                 // nil unless configured
	tls     *certificate.Certificate // nil without TLS
	keys    *apikeys.Keyring
	faults  faults.Plan

	store   *store.Store
	records records

	counters    stream.Counters
	jobCounters jobs.Counters
	metrics     *metrics
	rate        *limits.Rate
	signer      signer
	tokenLocks  tokenLocks
	jobs        *jobs.Runner
	fetch       outbound.Policy // addresses that jobs may fetch
	hooks       outbound.Policy // webhooks that they may call

	streams   *limits.Admission // open streams of this node
	watchers  *limits.Admission
	transfers *limits.Admission
	overload  *limits.Overload
	running   sync.Map // the open streams, *stream.Stream by id

	outbox  *stream.Outbox
	monitor *lease.Monitor // on a shared store only

	http            *http.Server
	listener        net.Listener
	metricsListener net.Listener   // nil if the metrics are served with the other routes
	others          []*http.Server // for the metrics, and for the operator of a data folder

	ctx        context.Context // of streams and background tasks; canceling it disconnects the streams
	cancel     context.CancelFunc
	background sync.WaitGroup
	once       sync.Once
	stopped    chan struct{}
	err        error // valid once stopped is closed
}

// Start opens the store, listens and serves. It returns when the server is
// ready for requests. ctx bounds the start only; Shutdown ends the server.
// Errors that a user can do something about carry a hint.
func Start(ctx context.Context, o Options) (*Server, error) { return start(ctx, o, time.Now) }

// start is Start with another wall clock.
func start(ctx context.Context, o Options, now func() time.Time) (_ *Server, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Server{
		options: o, log: o.Logger, now: now, node: uuid.NewString(),
		faults:    faults.Plan(o.Faults),
		overload:  limits.NewOverload(now, o.Logger),
		streams:   limits.NewAdmission(o.MaxStreams, o.MaxAccountStreams),
		watchers:  limits.NewAdmission(max(watchersPerStream*o.MaxStreams, minWatchers), maxAccountWatchers),
		transfers: limits.NewAdmission(math.MaxInt, maxTransfers),
		stopped:   make(chan struct{}),
	}
	if o.PublicURL != "" {
		s.public, _ = url.Parse(o.PublicURL) // validated with the options
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			s.release()
		}
	}()

	// The store is opened first, because it locks the data folder that the rest uses.
	s.metrics = newMetrics(s)
	if err = s.openStore(ctx); err != nil {
		return nil, err
	}
	if s.tls, err = certificate.Load(o.TLS, o.DataDir, s.hosts(), now, s.log); err != nil {
		return nil, err
	}
	warnWritable(o, s.log)
	if err = s.listen(ctx); err != nil {
		return nil, err
	}
	for _, f := range o.Faults {
		s.log.Warn("this server misbehaves on purpose", "fault", f.String())
	}
	if err = s.startJobs(ctx); err != nil {
		return nil, err
	}
	s.startControl(ctx)
	s.startTasks()
	s.serveListeners()
	go s.monitorStore()
	s.log.Info("serving", "url", s.URL(), "address", s.Addr().String(), "version", o.Version, "node", s.node)
	return s, nil
}

// openStore opens the store, and joins the nodes that share it, or ends the streams that an
// earlier run has left in it.
func (s *Server) openStore(ctx context.Context) (err error) {
	if s.store, err = store.Open(ctx, store.Options{Dir: s.options.DataDir, URL: s.options.NATS, AccountStorage: s.options.AccountStorage,
		Logger: s.log, OnError: s.metrics.storeFailed}); err != nil {
		return err
	}
	s.records = s.store
	if s.keys, err = apikeys.NewKeyring(s.options.APIKeys, s.options.DataDir, s.now, s.log); err != nil {
		return err
	}
	if s.signer.key, err = s.store.Secret(ctx, "media-addresses"); err != nil {
		return err
	}
	if s.store.Shared() {
		s.rate = limits.NewRate(s.store, s.now, s.log)
		return s.joinCluster(ctx)
	}
	s.rate = limits.NewRate(nil, s.now, s.log)
	s.outbox = stream.OpenOutbox(s.store, "", false, &s.counters.Lost, s.log)
	if err = s.expireEarlier(ctx); err != nil {
		return fmt.Errorf("the streams of an earlier run could not be ended: %w", err)
	}
	return nil
}

// startTasks starts the background tasks.
func (s *Server) startTasks() {
	s.startTask("removal of expired media", sweepInterval, s.sweepMedia)
	if s.store.Shared() || s.options.DataDir != "" {
		s.startTask("refresh of API keys", apikeys.RefreshInterval, s.keys.Refresh)
	}
}

// startTask starts a background task, until the server ends.
func (s *Server) startTask(name string, interval time.Duration, do func(context.Context) error) {
	s.background.Go(func() { repeat(s.ctx, name, interval, s.log, do) })
}

// repeat does a task now and then every interval, until ctx is canceled. Of consecutive
// errors it logs the first one.
func repeat(ctx context.Context, name string, interval time.Duration, log *slog.Logger, task func(context.Context) error) {
	failing := false
	do := func() {
		err := recovered.Guard(func() error { return task(ctx) })
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.Warn("a background task fails; it is retried", "task", name, recovered.Attr(err))
		case err == nil && failing:
			log.Info("a background task works again", "task", name)
		}
		failing = err != nil
	}
	do()
	protocol.Every(ctx, interval, do)
}

// monitorStore stops the server when the store is lost: nothing works without it, and only
// a restart reopens it.
func (s *Server) monitorStore() {
	select {
	case <-s.ctx.Done():
	case <-s.store.Lost():
		ctx, cancel := context.WithTimeout(s.ctx, lostTimeout)
		defer cancel()
		err := hint.Add(fmt.Errorf("the store is lost: %w", s.store.Err()),
			"Start the server again; the log above says what led to this.")

		s.log.Error("the server stops", "error", err)
		_ = s.stop(ctx, err)
	}
}

// Wait blocks until the server has stopped. It returns nil after Shutdown, else
// why the server stopped.
func (s *Server) Wait() error {
	<-s.stopped
	return s.err
}

// Drain accepts no new streams, and waits until the open ones have ended by
// themselves, ctx ends, or the server stops. Everything else is served as
// before. Shutdown must follow.
func (s *Server) Drain(ctx context.Context) {
	s.log.Info("draining", "streams", s.streams.Count())
	s.streams.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if s.streams.Wait(ctx) != nil {
		s.log.Info("streams are still open after draining", "streams", s.streams.Count())
	}
}

// Shutdown accepts no new streams, finishes the open ones, closes them with
// 1001 and stops the server. If ctx ends first, it disconnects what is still
// open and returns an error that wraps that of ctx. A second call waits for the first one.
//
// The status of a stream that is finished this way is error, unless its client
// had already ended it: some of its audio was not processed.
func (s *Server) Shutdown(ctx context.Context) error {
	return s.stop(ctx, nil)
}

// stop stops the server, once; reason is what Wait returns.
func (s *Server) stop(ctx context.Context, reason error) error {
	var err error
	s.once.Do(func() {
		s.log.Info("stopping", "streams", s.streams.Count())
		s.jobs.Stop()
		s.streams.Stop()
		err = s.streams.Wait(ctx)
		if err != nil {
			s.watchers.Stop()
			s.disconnect(ctx, s.streams)
		}
		s.closeOutbox(ctx)
		// The watchers are stopped last, so that they see how the streams of this node ended.
		s.watchers.Stop()
		if late := s.watchers.Wait(ctx); late != nil {
			s.disconnect(ctx, s.watchers)
			err = cmp.Or(err, late)
		}
		if err != nil {
			err = hint.Add(fmt.Errorf("streams or watchers that did not end in time were disconnected: %w", err),
				"Give streams more time to end by themselves, with --drain TIME.")
		}
		if late := s.http.Shutdown(ctx); late != nil {
			// A transfer that is cut off fails for its client; it is no error of
			// Shutdown.
			s.log.Warn("requests were cut off", "error", errors.Join(late, s.http.Close()))
		}
		for _, other := range s.others { // the metrics could be read until now
			_ = other.Close() // ends a backup that is being made
		}
		s.release()
		s.err = reason
		close(s.stopped)
		s.log.Info("stopped")
	})
	<-s.stopped
	return err
}

// disconnect disconnects all streams and watchers, and waits for those of a.
func (s *Server) disconnect(ctx context.Context, a *limits.Admission) {
	s.cancel()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stream.CloseTimeout)
	defer cancel()
	_ = a.Wait(ctx)
}

// release releases everything that start has acquired.
func (s *Server) release() {
	s.cancel()
	s.background.Wait()
	for _, l := range []net.Listener{s.listener, s.metricsListener} {
		if l != nil {
			_ = l.Close() // closed already if the server ran
		}
	}
	if s.jobs != nil {
		s.jobs.Close()
	}
	if s.store != nil {
		s.closeOutbox(s.ctx) // done already if the server ran
		s.leaveCluster()
		if err := s.store.Close(); err != nil {
			s.log.Error("the store was not closed properly", "error", err)
		}
	}
}

// closeOutbox ends the outbox, once.
func (s *Server) closeOutbox(ctx context.Context) {
	if s.outbox == nil {
		return
	}
	timeout := outboxTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline)-outboxReserve)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s.outbox.Close(ctx)
}
