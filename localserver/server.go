package localserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/rehearsal"
	"hubbub/localserver/store"
)

// The limits of an HTTP connection. Streams leave them behind with their
// handshake and have their own.
const (
	headerTimeout  = 10 * time.Second // also of the TLS handshake
	requestTimeout = 30 * time.Second
	answerTimeout  = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeader      = 16 << 10
	// cutTimeout is what a stream that was cut off gets to write down its end.
	cutTimeout = 2*keepTimeout + linger
)

// Server is a running service.
type Server struct {
	options Options
	log     *slog.Logger
	now     func() time.Time
	node    string   // who runs a session: this process, this time
	public  *url.URL // nil unless told
	tls     *certificate
	keys    *keyring
	streams *streams
	count   counters
	faults  *rehearsal.Plan // nil but in a rehearsal

	store    *store.Store
	sessions store.Sessions
	journal  store.Journal
	feed     store.Feed
	voices   store.Voices
	places   store.Places

	watchman     *watchman       // nil when no other node shares the store
	watching     context.Context // of the watchman
	stopWatching context.CancelFunc
	media        store.Media

	metrics   *metrics
	limiter   *limiter
	signer    signer
	transfers *tally // of media, by account
	owned     *tally // open streams of this node, by account
	audience  *tally // watchers, by account
	watchers  *streams
	running   sync.Map // of id to *session: the open streams
	openings  *openings
	outbox    *outbox // nil when no other node shares the store
	chores    sync.WaitGroup

	http     *http.Server
	listener net.Listener

	life    context.Context // of streams: its end cuts them off
	cut     context.CancelFunc
	once    sync.Once
	stopped chan struct{}
	err     error // valid once stopped is closed
}

// Start listens, opens the store and serves. It returns when the server is
// ready for requests. ctx bounds the start alone; Shutdown ends the server.
// Errors that a user can do something about carry a hint.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	s := &Server{
		options: o, log: o.Logger, now: o.now, node: uuid.NewString(),
		keys: newKeyring(o.APIKeys, newSignedKeys(o.DataDir, o.now, o.Logger)), streams: newStreams(o.MaxStreams),
		transfers: newTally(maxTransfers), owned: newTally(o.MaxAccountStreams),
		watchers: newStreams(o.MaxWatchers), audience: newTally(maxAccountWatchers),
		faults: rehearsal.NewPlan(o.Faults), openings: newOpenings(o.Logger),
		stopped: make(chan struct{}),
	}
	if o.PublicURL != "" {
		s.public, _ = url.Parse(o.PublicURL) // checked with the options
	}
	s.life, s.cut = context.WithCancel(context.Background())
	s.watching, s.stopWatching = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			s.tearDown()
		}
	}()

	// The store first: it holds the lock on the folder of everything else.
	if s.store, err = store.Open(ctx, store.Options{Dir: o.DataDir, URL: o.NATS, MaxBytes: o.storeBytes, Logger: s.log}); err != nil {
		return nil, err
	}
	s.metrics = newMetrics(s)
	meter := storeMeter{func(call string) { s.metrics.storeErrors.WithLabelValues(call).Inc() }}
	s.sessions, s.places = meteredSessions{s.store, meter}, meteredPlaces{s.store, meter}
	s.journal, s.media = meteredJournal{s.store, meter}, meteredMedia{s.store, meter}
	s.feed = meteredFeed{s.store, meter}
	s.voices = meteredVoices{s.store, meter}
	if s.signer.key, err = s.store.Secret(ctx, "media-addresses"); err != nil {
		return nil, err
	}
	s.limiter = newLimiter(o.RatePerMinute, meteredCounters{s.store, meter}, s.store.Shared(), s.now, s.log)
	if s.store.Shared() {
		s.openOutbox()
		if err = s.shareKeys(ctx); err != nil {
			return nil, err
		}
		err = s.watch(ctx)
	} else {
		err = cleanUp(ctx, s.sessions, s.store, s.node, s.now().UTC(), s.log)
	}
	if err != nil {
		return nil, fmt.Errorf("what an earlier run left could not be cleaned up: %w", err)
	}
	if s.tls, err = s.certificate(); err != nil {
		return nil, err
	}
	if s.listener, err = listen(ctx, o.Addr); err != nil {
		return nil, err
	}
	s.http = &http.Server{
		Handler:                      s.routes(),
		ReadHeaderTimeout:            o.headTimeout,
		ReadTimeout:                  requestTimeout,
		WriteTimeout:                 answerTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true, // OPTIONS * is answered in JSON too
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if s.tls != nil {
		s.http.TLSConfig = s.tls.config()
	}
	for _, f := range o.Faults {
		s.log.Warn("this server misbehaves on purpose", "fault", f.String())
	}
	go s.serve()
	s.chores.Add(2)
	go s.sweep()
	go s.withdraw()
	if k := s.keys.signed.shared; k != nil {
		s.chores.Add(1)
		go k.run(s.life, s.chores.Done)
	}
	s.log.Info("serving", "url", s.URL(), "version", o.Version, "node", s.node)
	return s, nil
}

// hosts are the names that the certificate has to cover beyond this machine's.
func (s *Server) hosts() []string {
	host, _, _ := net.SplitHostPort(s.options.Addr) // checked with the options
	if s.public == nil {
		return []string{host}
	}
	return []string{host, s.public.Hostname()}
}

// serve owns the listener.
func (s *Server) serve() {
	var err error
	if s.tls != nil {
		err = s.http.ServeTLS(s.listener, "", "")
	} else {
		err = s.http.Serve(s.listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		s.stop(s.life, fmt.Errorf("the server can take no more connections: %w", err))
	}
}

// URL is the base address for clients on this machine, or the public one.
func (s *Server) URL() string {
	if s.public != nil {
		return s.public.String()
	}
	scheme := "https"
	if s.tls == nil {
		scheme = "http"
	}
	host, port, _ := net.SplitHostPort(s.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if asked, _, _ := net.SplitHostPort(s.options.Addr); asked == "::" {
			host = "::1"
		}
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// CAPEM is the certificate that a client needs to trust the server, nil
// without TLS or with a certificate of the operator's.
func (s *Server) CAPEM() []byte {
	if s.tls == nil {
		return nil
	}
	return append([]byte(nil), s.tls.caPEM...)
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Wait blocks until the server has stopped: nil after Shutdown, else why it
// stopped serving.
func (s *Server) Wait() error {
	<-s.stopped
	return s.err
}

// Shutdown takes no new streams, finishes the open ones, closes them with 1001
// and stops. When ctx ends first, what is still open is cut off and the error
// of ctx is returned. A second call waits for the first one.
//
// A stream that is finished this way ends with the status error, unless its
// client had already ended it: some of what it had to say was not heard.
func (s *Server) Shutdown(ctx context.Context) error {
	return s.stop(ctx, nil)
}

// stop ends the server once, for a reason or for none.
func (s *Server) stop(ctx context.Context, reason error) error {
	var err error
	s.once.Do(func() {
		s.log.Info("stopping", "streams", s.streams.count())
		s.streams.stop()
		err = s.streams.wait(ctx)
		if err != nil {
			s.watchers.stop()
			s.cut()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cutTimeout)
			defer cancel()
			_ = s.streams.wait(last)
		}
		s.closeOutbox(ctx)
		// The watchers last: they see how the streams here ended.
		s.watchers.stop()
		if late := s.watchers.wait(ctx); late != nil {
			s.cut()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cutTimeout)
			defer cancel()
			_ = s.watchers.wait(last)
			err = errors.Join(err, late)
		}
		if late := s.http.Shutdown(ctx); late != nil {
			err = errors.Join(err, late, s.http.Close())
		}
		s.tearDown()
		s.err = reason
		close(s.stopped)
		s.log.Info("stopped")
	})
	<-s.stopped
	return err
}

// tearDown gives back what Start took, as far as it came.
func (s *Server) tearDown() {
	s.cut()
	s.chores.Wait()
	if s.listener != nil {
		_ = s.listener.Close() // closed already when the server ran
	}
	if s.store != nil {
		s.closeOutbox(s.life) // done already when the server ran
		s.unwatch()
		if err := s.store.Close(); err != nil {
			s.log.Error("the store did not close well", "error", err)
		}
	}
}
