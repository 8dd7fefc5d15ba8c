package localserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"hubbub/localserver/engine"
	"hubbub/localserver/rehearsal"
	"hubbub/localserver/store"
)

// DefaultAccount is the account of static API keys.
const DefaultAccount = "default"

const (
	// MaxAccountStreams is the most that Options.MaxAccountStreams may be.
	MaxAccountStreams = store.MaxPlaces
	// MaxRatePerMinute is the most that Options.RatePerMinute may be.
	MaxRatePerMinute = store.MaxCounted
)

// Diarizer turns one stream's audio into starts and ends of turns. Only one
// goroutine uses it. engine.Engine is the one that is meant.
type Diarizer interface {
	// Push takes the next samples (16 kHz, mono) and appends the events that
	// they commit to out.
	Push(samples []float32, out []engine.Event) []engine.Event
	// Flush says that the input is over and appends everything that is left.
	Flush(out []engine.Event) []engine.Event
}

// Options is everything a server may be told. Addr is needed, and APIKeys, a
// DataDir or NATS.
type Options struct {
	// Addr is HOST:PORT to listen on; port 0 picks one.
	Addr string
	// TLS says where the certificate comes from. The zero value is SelfSigned.
	TLS TLSConfig
	// APIKeys are the static keys, all of DefaultAccount. With a DataDir, keys
	// that CreateKey has signed for it are accepted as well, or alone; and with
	// NATS those for the DataDir of any node.
	APIKeys []string
	// DataDir keeps the store and the certificate. "" keeps both in memory,
	// and both end with the server.
	DataDir string
	// NATS names the servers of a NATS cluster with JetStream, separated by
	// commas: nats://HOST:PORT. All nodes that name it are one service. ""
	// means a store of the server's own.
	NATS string
	// PublicURL is the address that clients reach the server under, when it
	// is not the one they name in their requests: http or https, without a
	// query.
	PublicURL string
	// MaxStreams bounds the streams that are open at once. 0 means
	// DefaultMaxStreams.
	MaxStreams int
	// MaxAccountStreams bounds the streams of one account that are open at
	// once, over all nodes that share a store. 0 means MaxStreams, or
	// MaxAccountStreams if that is less.
	MaxAccountStreams int
	// MaxWatchers bounds how many follow streams on this node at once. 0 means
	// four for each of MaxStreams, and 16 at least.
	MaxWatchers int
	// RatePerMinute bounds the requests of one account to one operation in any
	// minute, over all nodes that share a store. 0 means
	// DefaultRatePerMinute; a negative number means no bound.
	RatePerMinute int
	// MaxMedia is the largest media object, in bytes. 0 means DefaultMaxMedia.
	MaxMedia int64
	// KeepAudio keeps the audio of every stream that is done, as
	// media://live/<id>/audio.wav, as long as any other object.
	KeepAudio bool
	// Unpaced lets a client send audio faster than real time; back pressure
	// alone slows it down. For the private server of a file that is sent as
	// fast as the engine takes it.
	Unpaced bool
	// Faults make the server misbehave on purpose.
	Faults []rehearsal.Fault
	// Engine configures the engine of each stream.
	Engine engine.Config
	// NewDiarizer makes the engine of one stream. nil means
	// engine.New(Engine).
	NewDiarizer func() (Diarizer, error)
	// Logger receives requests, streams and troubles, never a token, a key or
	// a query. nil discards them.
	Logger *slog.Logger
	// Version is what the server calls itself in the log.
	Version string

	// For tests: the wall clock, how often a stream looks at it, the waits of
	// a stream's reader and writer, and for a store that is late, how often a lease is renewed, and the room
	// of the embedded store.
	now          func() time.Time
	tick         time.Duration
	pingEvery    time.Duration
	readTimeout  time.Duration
	writeTimeout time.Duration
	lateTimeout  time.Duration
	headTimeout  time.Duration // of a TLS handshake, and of the head of a request
	leaseEvery   time.Duration
	watchEvery   time.Duration // how often a watcher without pulses looks by itself
	slowAfter    time.Duration // how long a watcher may take nothing
	storeBytes   int64
}

// TLSMode is where the server's certificate comes from.
type TLSMode string

// The modes.
const (
	// SelfSigned makes a certificate for the listen host, localhost, 127.0.0.1
	// and ::1. With a DataDir it is kept there, readable by its owner only.
	SelfSigned TLSMode = "self-signed"
	// TLSOff serves plain HTTP and WebSocket, for a proxy that ends TLS.
	TLSOff TLSMode = "off"
	// TLSFiles takes a certificate and its key from files, and takes them
	// again whenever they change.
	TLSFiles TLSMode = "files"
)

// TLSConfig says how connections are secured.
type TLSConfig struct {
	Mode TLSMode
	// Cert and Key are the PEM files of TLSFiles, the certificate with its
	// chain.
	Cert, Key string
}

// String is the value of the flag --tls.
func (c TLSConfig) String() string {
	if c.Mode == TLSFiles {
		return c.Cert + "," + c.Key
	}
	return string(c.Mode)
}

// ParseTLS reads the value of the flag --tls: self-signed, off, or CERT,KEY.
func ParseTLS(s string) (TLSConfig, error) {
	switch m := TLSMode(s); m {
	case SelfSigned, TLSOff:
		return TLSConfig{Mode: m}, nil
	}
	if cert, key, ok := strings.Cut(s, ","); ok && cert != "" && key != "" {
		return TLSConfig{Mode: TLSFiles, Cert: cert, Key: key}, nil
	}
	return TLSConfig{}, &hinted{fmt.Errorf("unknown TLS mode %q", s), "Choose self-signed, off, or CERT,KEY: two PEM files."}
}

// withDefaults checks the options and fills in what was left out.
func (o Options) withDefaults() (Options, error) {
	if o.TLS.Mode == "" {
		o.TLS.Mode = SelfSigned
	}
	if _, err := ParseTLS(o.TLS.String()); err != nil {
		return o, err
	}
	if _, _, err := net.SplitHostPort(o.Addr); err != nil {
		return o, &hinted{fmt.Errorf("listen address %q is not HOST:PORT", o.Addr),
			"Give one such as 127.0.0.1:8580; port 0 picks a free one."}
	}
	if len(o.APIKeys) == 0 && o.DataDir == "" && o.NATS == "" {
		return o, &hinted{errors.New("the server has no API key"),
			"Give one with --api-key or HUBBUB_API_KEY, or a data folder with --data and keys of 'hubbub key create'."}
	}
	for _, k := range o.APIKeys {
		if strings.TrimSpace(k) != k || k == "" || strings.ContainsAny(k, " \t\r\n") {
			return o, &hinted{errors.New("an API key is empty or holds white space"),
				"Choose a key of letters and digits; it travels in an HTTP header."}
		}
	}
	if err := checkPublicURL(o.PublicURL); err != nil {
		return o, err
	}
	if o.MaxStreams < 0 {
		return o, &hinted{fmt.Errorf("%d streams at most is out of range", o.MaxStreams), "Give 1 or more."}
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = DefaultMaxStreams()
	}
	if o.MaxAccountStreams < 0 || o.MaxAccountStreams > MaxAccountStreams {
		return o, &hinted{fmt.Errorf("%d streams of an account at most is out of range", o.MaxAccountStreams),
			fmt.Sprintf("Give 1 to %d.", MaxAccountStreams)}
	}
	if o.MaxAccountStreams == 0 {
		o.MaxAccountStreams = min(o.MaxStreams, MaxAccountStreams)
	}
	if o.RatePerMinute > MaxRatePerMinute {
		return o, &hinted{fmt.Errorf("%d requests a minute is out of range", o.RatePerMinute),
			fmt.Sprintf("Give 1 to %d, or -1 for no limit.", MaxRatePerMinute)}
	}
	if o.MaxWatchers <= 0 {
		o.MaxWatchers = max(4*o.MaxStreams, 16)
	}
	if o.RatePerMinute == 0 {
		o.RatePerMinute = DefaultRatePerMinute
	}
	if o.MaxMedia < 0 {
		return o, &hinted{fmt.Errorf("media of %d bytes at most is out of range", o.MaxMedia), "Give 1 or more."}
	}
	if o.MaxMedia == 0 {
		o.MaxMedia = DefaultMaxMedia
	}
	if err := o.Engine.Validate(); err != nil {
		return o, err
	}
	if o.NewDiarizer == nil {
		config := o.Engine
		o.NewDiarizer = func() (Diarizer, error) { return engine.New(config) }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.tick == 0 {
		o.tick = 500 * time.Millisecond
	}
	if o.headTimeout == 0 {
		o.headTimeout = headerTimeout
	}
	if o.lateTimeout == 0 {
		o.lateTimeout = lateTimeout
	}
	if o.leaseEvery == 0 {
		o.leaseEvery = leaseEvery
	}
	if o.watchEvery == 0 {
		o.watchEvery = watchEvery
	}
	if o.slowAfter == 0 {
		o.slowAfter = slowAfter
	}
	if o.pingEvery == 0 {
		o.pingEvery = pingEvery
	}
	if o.readTimeout == 0 {
		o.readTimeout = readTimeout
	}
	if o.writeTimeout == 0 {
		o.writeTimeout = writeTimeout
	}
	return o, nil
}

func checkPublicURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return &hinted{fmt.Errorf("public address %q is not one that clients can use", s),
			"Give one such as https://hubbub.example.org."}
	}
	return nil
}

// hinted is an error that also says what to do next.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }
func (h *hinted) Hint() string  { return h.hint }
