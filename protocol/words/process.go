package words

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"hubbub/capture/program"
)

// process is a recogniser that is started for each turn: WAV on standard input,
// text on standard output, exit code 0.
type process struct {
	args    []string
	timeout time.Duration
}

func newProcess(args []string, timeout time.Duration) (*process, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, &Error{what: fmt.Sprintf("the recogniser %s cannot be run: %v", args[0], errors.Unwrap(err)), hint: "Install it, or give its path. An endpoint is given as http://HOST:PORT."}
	}
	return &process{append([]string{path}, args[1:]...), timeout}, nil
}

// bounded keeps an output up to a length and discards what does not fit.
type bounded struct {
	kept bytes.Buffer // a field: its ReadFrom has no bound
	max  int
	full func() // called once the output is longer
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.max-b.kept.Len() {
		b.full()
		return len(p), nil
	}
	return b.kept.Write(p)
}

// Recognise runs the process, which knows no times. One that floods its output or does
// not end is killed.
func (p *process) Recognise(ctx context.Context, wav []byte, _ bool) (string, []Word, error) {
	limited, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	flooded := false
	cmd := program.Command(limited, p.args[0], p.args[1:]...)
	text := &bounded{max: maxText, full: func() { flooded = true; cancel() }}
	message := &program.Tail{Max: program.MaxComplaint}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(wav), text, message
	err := cmd.Run()
	fail := func(what, hint string) (string, []Word, error) {
		return "", nil, &Error{what: "the recogniser " + p.args[0] + " " + what, hint: hint}
	}
	switch {
	case ctx.Err() != nil:
		return "", nil, ctx.Err()
	case flooded:
		return fail(fmt.Sprintf("writes more than %d kB for one turn", maxText>>10), "It must write the words, and nothing else, on standard output.")
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return fail(fmt.Sprintf("did not end within %d s", int(p.timeout.Seconds())), "It must end when its standard input ends; try it with a short WAV file.")
	case err != nil:
		what := err.Error()
		if message.Any() {
			what += ": " + clean(message.Last())
		}
		return fail("failed: "+what, "Try the command by itself: a WAV file on standard input, the words on standard output.")
	}
	return clean(text.kept.String()), nil, nil
}
