// Command soak measures what the console costs over a long session: it runs
// the real program in a terminal against a service of its own, in another
// process, that has 8 people talk, and samples the program's memory, its CPU
// time and the bytes that go to the terminal. It is what `make soak` runs.
//
//	soak -for 1h -- bin/hubbub --record /tmp/rec
//
// Standard output gets one line for each sample. Linux only: it reads /proc.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"hubbub/localserver"
	"hubbub/localserver/stream"
)

const (
	people        = 8 // who talk
	columns, rows = 120, 34
)

// The limits of a run: the share of a core, and the growth of memory after the
// first tenth of the run.
const (
	maxCore   = 3.0 // percent
	maxGrowth = 8.0 // MB
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("soak", flag.ContinueOnError)
	long := fs.Duration("for", time.Hour, "how long the session is")
	every := fs.Duration("every", 30*time.Second, "interval of the samples")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() == 0 {
		return errors.New("no program: soak -- bin/hubbub")
	}
	dir, err := os.MkdirTemp("", "hubbub-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	script := converse(long.Seconds())
	audio := filepath.Join(dir, "talk.wav")
	if err := writeAudio(ctx, audio, *long); err != nil {
		return err
	}
	key := rand.Text()
	server, err := localserver.Start(ctx, localserver.Options{
		Addr: "127.0.0.1:0", APIKeys: []string{key},
		NewDiarizer: func() (stream.Diarizer, error) { return &scriptedEngine{script: script}, nil },
	})
	if err != nil {
		return err
	}
	defer server.Shutdown(context.WithoutCancel(ctx))
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, server.CAPEM(), 0o600); err != nil {
		return err
	}

	command := append(fs.Args(), "--server", server.URL(), "--ca", ca, "--input", audio)
	t, err := openTerminal(ctx, dir, "HUBBUB_API_KEY="+key, command)
	if err != nil {
		return err
	}
	defer t.close()
	fmt.Printf("%d people, %d turns in %v, %dx%d, process %d\n", people, len(script)/2, *long, columns, rows, t.pid)
	return monitor(ctx, t, *long, *every)
}

// monitor samples until the session is over, and returns an error if a limit is
// exceeded.
func monitor(ctx context.Context, t *terminal, long, every time.Duration) error {
	fmt.Printf("%8s %9s %9s %9s %8s %8s %9s\n", "s", "RSS MB", "anon MB", "peak MB", "CPU s", "% core", "B/s")
	begin, last, base := time.Now(), sample{}, sample{}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s, err := t.sample(time.Since(begin))
		if err != nil {
			return fmt.Errorf("after %v: %w", time.Since(begin).Round(time.Second), err)
		}
		s.print(last)
		last = s
		if s.at <= long/10 || base.at == 0 {
			base = s
		}
		if s.at >= long {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	core := 100 * last.cpu.Seconds() / last.at.Seconds()
	growth := last.anon - base.anon
	fmt.Printf("whole run: %.2f %% of a core, %.1f MB more than after %.0f s, %.0f B/s to the terminal\n",
		core, growth, base.at.Seconds(), float64(last.bytes)/last.at.Seconds())
	if core > maxCore || growth > maxGrowth {
		return fmt.Errorf("the limits are %.0f %% of a core and %.0f MB", maxCore, maxGrowth)
	}
	return nil
}
