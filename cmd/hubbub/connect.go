package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"hubbub/localserver"
	"hubbub/localserver/engine"
	"hubbub/protocol"
)

// closeTime bounds the shutdown of the built-in server when its one stream is
// over.
const closeTime = 3 * time.Second

// engineFlags are the choices that the engine of the built-in server has, on
// `live` and on `serve`.
type engineFlags struct {
	latency     span
	maxSpeakers count
}

func defaultEngineFlags() engineFlags {
	return engineFlags{
		latency:     span{value: engine.DefaultLatency, min: protocol.MinLatency, max: protocol.MaxLatency},
		maxSpeakers: count{engine.MaxSpeakers, 1, engine.MaxSpeakers},
	}
}

func (f *engineFlags) add(flags *pflag.FlagSet) {
	flags.Var(&f.latency, "latency", "`TIME` that the built-in server decides behind the newest sample, 0.5 to 5 s")
	flags.Var(&f.maxSpeakers, "max-speakers", "`N` labels at most from the built-in server, 1 to 8")
}

func (f *engineFlags) config() engine.Config {
	return engine.Config{Latency: f.latency.value, MaxSpeakers: f.maxSpeakers.value}
}

// connection is a client with the server behind it, which may be our own.
type connection struct {
	*protocol.Client
	name    string        // for people
	key     string        // what opens the service
	latency time.Duration // 0 = not known
	close   func()
	others  bool // there may be others who watch
}

// connect reaches the remote service, or starts the built-in one on a loopback
// port, over TLS and with a key of its own; the client's way is the same.
func (a *App) connect(ctx context.Context, f *liveFlags) (*connection, error) {
	agent := "hubbub/" + version
	if f.server != "" {
		client, err := protocol.NewClient(protocol.ClientOptions{
			BaseURL: f.server, APIKey: f.apiKey, CAFile: f.ca, Insecure: f.insecure, UserAgent: agent, Timeout: f.timeout, Tap: f.tap,
		})
		return &connection{Client: client, name: f.server, key: f.apiKey, others: true, close: func() { client.Close() }}, err
	}
	key := rand.Text()
	// Its key never leaves this process, and a load test opens many streams.
	rate := -1
	if f.counted {
		rate = localserver.DefaultRatePerMinute
	}
	// The server outlives an interrupt: it still has turns to decide then.
	server, err := localserver.Start(context.WithoutCancel(ctx), localserver.Options{
		Addr:    "127.0.0.1:0",
		APIKeys: []string{key},
		Engine:  f.engine.config(),
		Unpaced: f.pace.value == "fast",

		MaxStreams:    f.maxStreams,
		RatePerMinute: rate,
		Logger:        slog.New(slog.DiscardHandler),
		Version:       version,
	})
	if err != nil {
		return nil, err
	}
	stop := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		_ = server.Shutdown(ctx)
	}
	client, err := protocol.NewClient(protocol.ClientOptions{
		BaseURL: server.URL(), APIKey: key, CACert: server.CAPEM(), UserAgent: agent, Timeout: f.timeout, Tap: f.tap,
	})
	if err != nil {
		stop()
		return nil, err
	}
	return &connection{
		Client: client, name: "built-in", key: key, latency: f.engine.latency.value,
		close: func() { client.Close(); stop() },
	}, nil
}
