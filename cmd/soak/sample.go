package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU time in /proc: sysconf(_SC_CLK_TCK), which
// Linux shows to programs as 100 on every machine.
const clockTick = 10 * time.Millisecond

// sample is the state of a process at one moment.
type sample struct {
	at              time.Duration
	rss, anon, peak float64 // MB; anon is what is the process's own, without the program's text
	cpu             time.Duration
	bytes           int64 // to the terminal since the beginning
}

func (t *terminal) sample(at time.Duration) (sample, error) {
	s := sample{at: at}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", t.pid))
	if err != nil {
		return s, fmt.Errorf("the program is gone: %w", err)
	}
	// The name in brackets may hold anything.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return s, errors.New("/proc/PID/stat is not as expected")
	}
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return s, err
		}
		s.cpu += time.Duration(n) * clockTick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", t.pid))
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kb, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch name {
		case "VmRSS":
			s.rss = kb / 1024
		case "RssAnon":
			s.anon = kb / 1024
		case "VmHWM":
			s.peak = kb / 1024
		}
	}
	if st, err := os.Stat(t.output); err == nil {
		s.bytes = st.Size()
	}
	return s, nil
}

// print writes the sample, and what it cost since the last one.
func (s sample) print(last sample) {
	core, rate := 0.0, 0.0
	if d := (s.at - last.at).Seconds(); d > 0 && last.at > 0 {
		core = 100 * (s.cpu - last.cpu).Seconds() / d
		rate = float64(s.bytes-last.bytes) / d
	}
	fmt.Printf("%8.1f %9.1f %9.1f %9.1f %8.2f %8.2f %9.0f\n", s.at.Seconds(), s.rss, s.anon, s.peak, s.cpu.Seconds(), core, rate)
}
