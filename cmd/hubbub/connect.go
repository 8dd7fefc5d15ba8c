package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hubbub/cmd/hubbub/internal/keyring"
	"hubbub/cmd/hubbub/internal/settings"
	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/localserver"
	"hubbub/localserver/engine"
	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/hint"
	"hubbub/protocol/trace"
	"hubbub/protocol/words"
)

// apiKeyEnv gives a key without the command line, which everybody on the machine
// can read.
const apiKeyEnv = "HUBBUB_API_KEY"

// serviceFlags name the service that a command uses.
type serviceFlags struct {
	server   string
	apiKey   string
	ca       string
	insecure bool

	keyless bool  // an API key is not needed
	noKey   error // says that there is none, if keyless
}

func (f *serviceFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.server, "server", "", "`URL` of a remote service (HUBBUB_SERVER); default: the built-in server")
	flags.StringVar(&f.apiKey, "api-key", "", "API `KEY` for the remote service; prefer HUBBUB_API_KEY or the key ring (hubbub config set-key), because arguments show in the process list")
	flags.StringVar(&f.ca, "ca", "", "PEM `FILE` with the CA certificate to trust for the remote service")
	flags.BoolVar(&f.insecure, "insecure", false, "do not verify the remote service's certificate")
	_ = cmd.MarkFlagFilename("ca", "pem", "crt")
}

// addRemote is add for a command that has no built-in server.
func (f *serviceFlags) addRemote(cmd *cobra.Command) {
	f.add(cmd)
	cmd.Flags().Lookup("server").Usage = "`URL` of the service (HUBBUB_SERVER)"
}

// complete finds the API key and rejects flags that exclude each other. The
// settings may contain a CA for a service that this run does not use.
func (f *serviceFlags) complete(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if f.server == "" {
		if given("ca") && f.ca != "" || given("insecure") && f.insecure {
			return usage.Error("--ca and --insecure are for a remote service", "Give its address with --server URL, or leave them out.")
		}
		f.ca, f.insecure = "", false
		return nil
	}
	if _, err := client.ParseAddress(f.server); err != nil {
		return usage.Of(err)
	}
	if f.ca != "" && f.insecure {
		return excludeEachOther(cmd, "ca", "insecure", "")
	}
	if f.apiKey = cmp.Or(f.apiKey, os.Getenv(apiKeyEnv)); f.apiKey != "" {
		return nil
	}
	var err error
	f.apiKey, err = keyring.Key(f.server)
	if errors.Is(err, keyring.ErrNoKey) {
		name := protocol.ShownAddress(f.server)
		err = usage.Error("no API key for "+name, "Store one with `hubbub config set-key "+name+"`, or give it in HUBBUB_API_KEY or with --api-key.")
		if f.keyless {
			f.noKey = err
			return nil
		}
		return err
	}
	if err != nil {
		return hint.Add(fmt.Errorf("cannot ask the key ring for the API key: %w", err), "Unlock the key ring, or give the key in HUBBUB_API_KEY.")
	}
	return nil
}

// trust are the flags without which another one may not trust the service.
func (f *serviceFlags) trust() string {
	switch {
	case f.ca != "":
		return " " + shellquote.Join("--ca", f.ca)
	case f.insecure:
		return " --insecure"
	}
	return ""
}

// completeFromSettings applies the settings first.
func (f *serviceFlags) completeFromSettings(cmd *cobra.Command) error {
	if _, err := settings.Apply(cmd); err != nil {
		return err
	}
	return f.complete(cmd)
}

// engineFlags configure the engine of the built-in server.
type engineFlags struct {
	latency     durationFlag
	maxSpeakers count
}

func (f *engineFlags) add(flags *pflag.FlagSet) {
	f.latency = newDuration(engine.DefaultLatency, protocol.MinLatency, protocol.MaxLatency)
	f.maxSpeakers = newCount(engine.MaxSpeakers, engine.MaxSpeakers)
	flags.Var(&f.latency, "latency", "latency `TIME` of the built-in server: turns are committed this far behind the newest sample, 0.5 to 5 s")
	flags.Var(&f.maxSpeakers, "max-speakers", "at most `N` speakers from the built-in server, 1 to 8")
}

func (f *engineFlags) config() engine.Config {
	return engine.Config{Latency: f.latency.value, MaxSpeakers: f.maxSpeakers.value}
}

// wordsFlags name a speech recogniser.
type wordsFlags struct {
	words      string // "" = none
	wordsModel string
}

// recogniserHelp is what the value of --words may be.
const recogniserHelp = "the URL of an OpenAI-compatible endpoint (key in " + wordsKeyEnv + "), or a command that gets WAV on its standard input and prints text"

func (f *wordsFlags) add(flags *pflag.FlagSet, help string) {
	flags.StringVar(&f.words, "words", "", help)
	flags.StringVar(&f.wordsModel, "words-model", "", "`MODEL` that the endpoint of --words is asked for")
}

// wordsOfService is the value of --words that asks the remote service.
const wordsOfService = "service"

// wordsKeyEnv gives the key of the endpoint of --words.
const wordsKeyEnv = "HUBBUB_WORDS_KEY"

// recogniser is that of --words, nil without the flag. The key of an endpoint comes
// from the environment, or else from the key ring. timeout is for a part of a turn.
func (f *wordsFlags) recogniser(timeout time.Duration) (words.Recogniser, error) {
	switch f.words {
	case "":
		return nil, nil
	case wordsOfService:
		return nil, usage.Error("--words service needs a remote service", "Give your own recogniser with --words.")
	}
	key := os.Getenv(wordsKeyEnv)
	if strings.HasPrefix(f.words, "http") && key == "" {
		key, _ = keyring.Key(f.words) // most recognisers of one's own need none
	}
	r, err := words.New(f.words, f.wordsModel, key, timeout)
	if err != nil {
		return nil, usage.Of(fmt.Errorf("--words: %w", err))
	}
	return r, nil
}

// connectOptions are what a command needs of a connection beside its flags. All
// but the first three are of the built-in server.
type connectOptions struct {
	tracer  trace.Tracer               // nil = none
	timeout time.Duration              // of each network operation; 0 = the client's default
	waiting func(error, time.Duration) // see client.Options; nil = nothing is said

	engine      engine.Config
	unpaced     bool   // it accepts audio ahead of real time
	maxStreams  int    // 0 = its default
	rateLimited bool   // its rate limits apply
	failed      func() // called when it ends by itself; may be nil
}

// serviceClient is a client and the service that it uses.
type serviceClient struct {
	*client.Client
	name    string // display name of the service; without credentials
	key     string
	latency time.Duration // of the built-in server; 0 = unknown
	// close also shuts the built-in server down. Its error is why that ended by
	// itself before, nil otherwise.
	close func() error
}

// shutdownLimit bounds the shutdown of the built-in server after its last stream.
const shutdownLimit = 3 * time.Second

// connect returns a client of the remote service, or starts the built-in server
// on a loopback port, with TLS and a key of its own, and returns a client of
// that.
func (a *App) connect(ctx context.Context, f serviceFlags, o connectOptions) (*serviceClient, error) {
	options := client.Options{UserAgent: "hubbub/" + version, Timeout: o.timeout, Tracer: o.tracer, Waiting: o.waiting}
	if f.server != "" {
		options.BaseURL, options.APIKey, options.CAFile, options.Insecure = f.server, f.apiKey, f.ca, f.insecure
		c, err := client.New(options)
		if err != nil {
			return nil, err
		}
		return &serviceClient{Client: c, name: protocol.ShownAddress(f.server), key: f.apiKey,
			close: func() error { c.Close(); return nil }}, nil
	}
	key := rand.Text()
	rate := -1
	if o.rateLimited {
		rate = localserver.DefaultRatePerMinute
	}
	// The server outlives an interrupt: it has turns to decide then.
	server, err := localserver.Start(context.WithoutCancel(ctx), localserver.Options{
		Addr:    "127.0.0.1:0",
		APIKeys: []string{key},
		Engine:  o.engine,
		Unpaced: o.unpaced,

		MaxStreams:    o.maxStreams,
		RatePerMinute: rate,
		Logger:        slog.New(slog.DiscardHandler),
		Version:       version,
	})
	if err != nil {
		return nil, err
	}
	ended := awaitEnd(server, o.failed)
	stop := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
		defer cancel()
		_ = server.Shutdown(ctx)
		return <-ended
	}
	options.BaseURL, options.APIKey, options.CACert = server.URL(), key, server.CAPEM()
	options.Patience = time.Hour // if it is slow, so is this machine
	began := time.Now()          // the certificate is that of this session, also when the clock is set
	options.Now = func() time.Time { return began }
	c, err := client.New(options)
	if err != nil {
		return nil, cmp.Or(err, stop())
	}
	return &serviceClient{Client: c, name: "built-in server", key: key, latency: o.engine.Latency,
		close: func() error { c.Close(); return stop() }}, nil
}

// slowConnection is how long connecting may take until that is said.
const slowConnection = 2 * time.Second

// noticeWait says that a refused request is repeated after a time. It is for requests
// while there is no screen.
func (a *App) noticeWait(refusal error, wait time.Duration) {
	if a.slow != nil {
		a.slow.Reset(wait + slowConnection)
	}
	a.notice("%v; trying again in %s", refusal, wait.Round(time.Second))
}

// connecting says what is connected to, once that has taken a while. The function that it returns ends this: nothing is
// said after it, because there may be a screen.
func (a *App) connecting(server *serviceClient) (end func()) {
	var once sync.Once
	a.slow = time.AfterFunc(slowConnection, func() {
		once.Do(func() { a.notice("connecting to %s", server.name) })
	})
	return func() { once.Do(func() {}) } // waits for a notice that is being printed
}

// awaitEnd waits on a goroutine of its own for the end of a server, and sends
// why it ended by itself, nil after a shutdown. It calls failed, unless that is
// nil, when the server ends by itself.
func awaitEnd(server interface{ Wait() error }, failed func()) <-chan error {
	ended := make(chan error, 1)
	go func() {
		err := server.Wait()
		ended <- err
		if err != nil && failed != nil {
			failed()
		}
	}()
	return ended
}

// isLoopback reports whether an address is one of this machine.
func isLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}
