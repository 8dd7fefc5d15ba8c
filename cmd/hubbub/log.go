package main

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// logFlags configure the log of a server.
type logFlags struct {
	format, level choice
}

func defaultLogFlags() logFlags {
	return logFlags{format: choice{"text", []string{"text", "json"}},
		level: choice{"info", []string{"debug", "info", "warn", "error"}}}
}

func (f *logFlags) add(cmd *cobra.Command) {
	f.format.add(cmd, "log-format", "", "log `FORMAT`: text or json")
	f.level.add(cmd, "log-level", "", "lowest `LEVEL` that is logged: debug, info, warn or error")
}

// logger writes one line for each record, of the chosen level or above.
func (f *logFlags) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.level.value)) // every choice is the name of a level
	o := &slog.HandlerOptions{Level: level}
	if f.format.value == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
