package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// terminal is a program in a tmux of its own.
type terminal struct {
	socket string
	pid    int
	output string // file that gets every byte that the program writes
}

// openTerminal starts the program and waits until it is there.
func openTerminal(ctx context.Context, dir, env string, command []string) (*terminal, error) {
	t := &terminal{socket: filepath.Join(dir, "tmux"), output: filepath.Join(dir, "output")}
	pid, begin := filepath.Join(dir, "pid"), filepath.Join(dir, "begin")
	// The program waits until every byte of it is counted.
	const wait = `echo $$ >"$1"; while ! test -e "$2"; do sleep 0.1; done; shift 2; exec "$@"`
	err := t.tmux(ctx, append([]string{"-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows),
		"-e", "COLORTERM=truecolor", "-e", env, "sh", "-c", wait, "sh", pid, begin}, command...)...)
	if err != nil {
		return nil, err
	}
	err = t.tmux(ctx, "pipe-pane", "-o", "exec cat >'"+t.output+"'")
	for ; err == nil && t.pid == 0; time.Sleep(50 * time.Millisecond) {
		raw, _ := os.ReadFile(pid)
		t.pid, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
		err = ctx.Err()
	}
	if err == nil {
		err = os.WriteFile(begin, nil, 0o600)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *terminal) close() {
	_ = exec.Command("tmux", "-S", t.socket, "kill-server").Run()
}

func (t *terminal) tmux(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "tmux", append([]string{"-S", t.socket}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("tmux %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
