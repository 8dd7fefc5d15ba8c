package localserver

import (
	"cmp"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"hubbub/localserver/apikeys"
	"hubbub/localserver/certificate"
	"hubbub/localserver/engine"
	"hubbub/localserver/faults"
	"hubbub/localserver/outbound"
	"hubbub/localserver/store"
	"hubbub/localserver/stream"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/words"
)

const (
	// MaxAccountStreams is the largest value of Options.MaxAccountStreams.
	MaxAccountStreams = store.MaxQuota
	// MaxRatePerMinute is the largest value of Options.RatePerMinute.
	MaxRatePerMinute = store.MaxCounted
)

// Options configure a server. Addr is required, and APIKeys, a DataDir or NATS.
type Options struct {
	// Addr is HOST:PORT to listen on; port 0 picks one.
	Addr string
	// MetricsAddr is HOST:PORT at which the metrics are served, over plain HTTP.
	// "" serves them at Addr, with everything else.
	MetricsAddr string
	// TLS says where the certificate comes from. The zero value is self-signed.
	TLS certificate.Config
	// APIKeys are the static keys, of apikeys.DefaultAccount. With a DataDir,
	// keys of apikeys.Create for it are accepted as well, or alone; and with
	// NATS those for the DataDir of any node.
	APIKeys []string
	// DataDir keeps the store and the certificate. "" keeps both in memory,
	// and both end with the server.
	DataDir string
	// NATS names the servers of a NATS cluster with JetStream, separated by
	// commas: nats://HOST:PORT. All nodes that name it are one service. ""
	// means a store of this server alone.
	NATS string
	// PublicURL is the address that clients reach the server under, if it is
	// not the one in their requests: http or https, without a query.
	PublicURL string
	// MaxStreams bounds the streams that are open at once. 0 means
	// DefaultMaxStreams.
	MaxStreams int
	// MaxAccountStreams bounds the streams of one account that are open at
	// once, over all nodes that share a store. 0 means MaxStreams, or
	// MaxAccountStreams if that is less.
	MaxAccountStreams int
	// RatePerMinute bounds the requests of one account to one operation in any
	// minute, over all nodes that share a store. 0 means
	// DefaultRatePerMinute; a negative number means no limit.
	RatePerMinute int
	// MaxMedia is the size of the largest media object, in bytes. 0 means
	// DefaultMaxMedia.
	MaxMedia int64
	// AccountStorage bounds the media of one account, in bytes, over all nodes
	// that share a store. 0 means DefaultAccountStorage. A store in memory has
	// store.MediaMemory at most.
	AccountStorage int64
	// KeepAudio stores the audio of every stream that is done, as
	// media://live/<id>/audio.wav, for as long as any other object.
	KeepAudio bool
	// Jobs is how many jobs on whole recordings this node runs at once. 0 means
	// one for each core, a negative number none: other nodes of the cluster run
	// them.
	Jobs int
	// FetchFrom are the hosts that jobs may fetch audio from, and WebhookTo those
	// that webhooks may call over plain HTTP and at private addresses; see
	// outbound.ParseHosts.
	FetchFrom, WebhookTo []string
	// Unpaced allows audio faster than real time, limited by back pressure
	// only, and pauses of any length. It is for the private server of a file that is sent as fast as the
	// engine can process it.
	Unpaced bool
	// Faults make the server misbehave on purpose.
	Faults []faults.Fault
	// Engine configures the engine of each stream.
	Engine engine.Config
	// NewDiarizer returns the diarizer of one stream. nil means
	// engine.New(Engine).
	NewDiarizer func() (stream.Diarizer, error)
	// Words recognises the speech of streams and jobs that ask for it; nil = of none.
	// The server calls it for one turn for each core at the same time, at least two.
	Words words.Recogniser
	// Logger receives requests, streams and problems, never a token, a key or
	// a query. nil discards them.
	Logger *slog.Logger
	// Traces records a span for each request; nil records none.
	Traces trace.TracerProvider
	// Version is the server's version, for the log.
	Version string
}

// streamsPerCore is how many streams one core can process.
//
// It was measured (docs/performance.md): `hubbub serve` limited to one hardware thread,
// and `hubbub load` on another one with more and more streams, as long as the 99th
// percentile of the events' lag was below 1.5 s and no chunk was dropped. The slowest
// machine processed 40 streams and not 50, a current one 90 to 110. The default is two
// thirds of 40, rounded up to a multiple of five: machines differ, and have other
// work.
const streamsPerCore = 30

// cores is how many cores the process may use, whatever the number of threads that
// run Go code is set to later.
var cores = runtime.GOMAXPROCS(0)

// DefaultMaxStreams is the value of Options.MaxStreams unless given:
// streamsPerCore for each core that the process may use.
func DefaultMaxStreams() int { return streamsPerCore * cores }

// Validate reports an option that is out of range or malformed. The error carries a
// hint.
func (o Options) Validate() error {
	o = o.withDefaults()
	if _, err := certificate.Parse(o.TLS.String()); err != nil {
		return err
	}
	for _, addr := range []string{o.Addr, cmp.Or(o.MetricsAddr, o.Addr)} {
		_, port, err := net.SplitHostPort(addr)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			return hint.Errorf("Give one such as 127.0.0.1:8580; port 0 picks a free one.", "listen address %q is not HOST:PORT", addr)
		}
	}
	if len(o.APIKeys) == 0 && o.DataDir == "" && o.NATS == "" {
		return hint.Errorf("Give one with --api-key or in HUBBUB_API_KEY, or --data DIR and a key of 'hubbub key create'.",
			"a server needs an API key")
	}
	for _, k := range o.APIKeys {
		if strings.TrimSpace(k) != k || k == "" || strings.ContainsAny(k, " \t\r\n") {
			return hint.Errorf("Choose a key of letters and digits; it is sent in an HTTP header.", "an API key is empty or contains white space")
		}
	}
	if err := cmp.Or(checkPublicURL(o.PublicURL), checkNATS(o.NATS)); err != nil {
		return err
	}
	for _, limit := range []struct {
		value, least, most int64
		what, allowed      string
	}{
		{int64(o.MaxStreams), 1, math.MaxInt64, "%d streams at most", "1 or more"},
		{int64(o.MaxAccountStreams), 1, MaxAccountStreams, "%d streams of an account at most", fmt.Sprintf("1 to %d", MaxAccountStreams)},
		{int64(o.RatePerMinute), -1, MaxRatePerMinute, "%d requests a minute", fmt.Sprintf("1 to %d, or -1 for no limit", MaxRatePerMinute)},
		{o.MaxMedia, 1, math.MaxInt64, "media of %d bytes at most", "1 or more"},
		{o.AccountStorage, 1, math.MaxInt64, "%d bytes of media for an account", "1 or more"},
	} {
		if limit.value < limit.least || limit.value > limit.most {
			return hint.Errorf("Give "+limit.allowed+".", limit.what+" is out of range", limit.value)
		}
	}
	for _, list := range [][]string{o.FetchFrom, o.WebhookTo} {
		if _, err := outbound.ParseHosts(list); err != nil {
			return hint.Add(err, "Give names such as audio.example.org, *.example.org, addresses, or networks such as 10.0.0.0/8.")
		}
	}
	return o.Engine.Validate()
}

// withDefaults fills in what was omitted.
func (o Options) withDefaults() Options {
	o.TLS.Mode = cmp.Or(o.TLS.Mode, certificate.SelfSigned)
	o.MaxStreams = cmp.Or(o.MaxStreams, DefaultMaxStreams())
	o.MaxAccountStreams = cmp.Or(o.MaxAccountStreams, min(o.MaxStreams, MaxAccountStreams))
	o.RatePerMinute = cmp.Or(o.RatePerMinute, DefaultRatePerMinute)
	o.Jobs = cmp.Or(o.Jobs, cores)
	o.MaxMedia = cmp.Or(o.MaxMedia, DefaultMaxMedia)
	o.AccountStorage = cmp.Or(o.AccountStorage, DefaultAccountStorage)
	if o.DataDir == "" && o.NATS == "" {
		o.AccountStorage = min(o.AccountStorage, store.MediaMemory)
	}
	if o.NewDiarizer == nil {
		config := o.Engine
		o.NewDiarizer = func() (stream.Diarizer, error) { return engine.New(config) }
	}
	if o.Words != nil {
		o.Words = words.Limit(o.Words, wordsAtOnce())
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Traces == nil {
		o.Traces = noop.NewTracerProvider()
	}
	return o
}

// wordsAtOnce is how many turns are recognised at the same time.
func wordsAtOnce() int { return max(cores, 2) }

func checkPublicURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	notASCII := func(r rune) bool { return r > unicode.MaxASCII } // would be encoded for a path
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") || !protocol.ValidPort(u) ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.ContainsFunc(u.Host, notASCII) {
		return hint.Errorf("Give one such as https://hubbub.example.org, with a name in ASCII (xn--...) and without a user name, query or fragment.",
			"public address %s cannot be used by clients", protocol.ShownAddress(s))
	}
	return nil
}

// checkNATS checks addresses of NATS servers as the NATS client reads them: all of them
// are WebSockets, or none.
func checkNATS(addresses string) error {
	const webSocket = "ws"
	first := ""
	for a := range strings.SplitSeq(addresses, ",") {
		if a = strings.TrimSpace(a); a == "" {
			continue
		}
		if !strings.Contains(a, "://") {
			a = "nats://" + a
		}
		u, err := url.Parse(a)
		if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) || !protocol.ValidPort(u) {
			return hint.Errorf("Give one such as nats://n1.example.org:4222, or of tls, ws or wss; separate several by commas.",
				"NATS address %s cannot be used", protocol.ShownAddress(a))
		}
		first = cmp.Or(first, u.Scheme)
		if strings.HasPrefix(u.Scheme, webSocket) != strings.HasPrefix(first, webSocket) {
			return hint.Errorf("Give only addresses of nats and tls, or only of ws and wss.", "NATS addresses of %s and %s cannot be used together", first, u.Scheme)
		}
	}
	if addresses != "" && first == "" { // the client would take a server of this machine
		return hint.Errorf("Give one such as nats://n1.example.org:4222.", "there is no NATS address in %q", addresses)
	}
	return nil
}

// othersMayWrite are the permissions of a file that others than its owner can
// change.
const othersMayWrite fs.FileMode = 0o022

// warnWritable logs a warning for every file that decides who may use the
// service and that other users of the machine can change.
func warnWritable(o Options, log *slog.Logger) {
	if runtime.GOOS == "windows" { // has no such permissions
		return
	}
	var files []string
	if o.DataDir != "" {
		files = append([]string{o.DataDir, filepath.Join(o.DataDir, certificate.File)}, apikeys.Files(o.DataDir)...)
	}
	if o.TLS.Mode == certificate.Files {
		files = append(files, o.TLS.Cert, o.TLS.Key)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Mode()&othersMayWrite != 0 {
			log.Warn("other users of this machine can change this file; take the permission away with chmod go-w",
				"file", file, "mode", info.Mode().Perm().String())
		}
	}
}
