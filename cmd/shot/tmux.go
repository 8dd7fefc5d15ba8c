package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// scene is what a program is to do before its picture is taken.
type scene struct {
	width, height int
	light         bool
	until         *regexp.Regexp
	after         time.Duration
	keys          string
}

var servers atomic.Int32

// capture runs a program in a tmux server that nobody else uses and answers
// the screen with its escape sequences.
func (s scene) capture(ctx context.Context, command []string) ([]byte, error) {
	if _, err := exec.LookPath("tmux"); err != nil {
		return nil, fmt.Errorf("tmux is needed to run a program: %w", err)
	}
	// A server that has just been killed may still hold its socket.
	socket := fmt.Sprintf("shot-%d-%d", os.Getpid(), servers.Add(1))
	tmux := func(args ...string) ([]byte, error) {
		out, err := exec.CommandContext(ctx, "tmux", append([]string{"-L", socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("tmux %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
		}
		return out, nil
	}
	defer func() {
		_ = exec.Command("tmux", "-L", socket, "kill-server").Run()
	}()
	// COLORFGBG is how a program learns of a light terminal where the
	// terminal cannot be asked, as under tmux.
	fgbg := "15;0"
	if s.light {
		fgbg = "0;15"
	}
	args := []string{"new-session", "-d", "-x", fmt.Sprint(s.width), "-y", fmt.Sprint(s.height),
		"-e", "COLORTERM=truecolor", "-e", "COLORFGBG=" + fgbg, "-e", "NO_COLOR="}
	if _, err := tmux(append(args, quote(command))...); err != nil {
		return nil, err
	}
	// A program that ends leaves its last screen.
	_, _ = tmux("set-option", "-g", "remain-on-exit", "on")
	var last []byte
	for {
		screen, err := tmux("capture-pane", "-p")
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		if err == nil {
			last = screen
		}
		if s.until.Match(screen) && strings.TrimSpace(string(screen)) != "" {
			break
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return nil, fmt.Errorf("the screen did not come to match %q; it was:\n%s", s.until, last)
		}
	}
	if err := wait(ctx, s.after); err != nil {
		return nil, err
	}
	for _, k := range strings.Fields(s.keys) {
		if _, err := tmux("send-keys", k); err != nil {
			return nil, err
		}
		if err := wait(ctx, 300*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return tmux("capture-pane", "-e", "-p")
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// quote makes a command line of words, for the shell that tmux starts.
func quote(words []string) string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return "exec " + strings.Join(q, " ")
}
