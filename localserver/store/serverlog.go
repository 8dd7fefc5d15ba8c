package store

import (
	"fmt"
	"log/slog"
)

// serverLog takes in what the embedded server has to say: troubles as such,
// everything else for those who debug.
type serverLog struct {
	log   *slog.Logger
	fatal chan string // the first fatal trouble
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(text(format, v), "from", "nats") }
func (l *serverLog) Debugf(format string, v ...any)  { l.log.Debug(text(format, v), "from", "nats") }
func (l *serverLog) Tracef(format string, v ...any)  { l.log.Debug(text(format, v), "from", "nats") }
func (l *serverLog) Warnf(format string, v ...any)   { l.log.Warn(text(format, v), "from", "nats") }
func (l *serverLog) Errorf(format string, v ...any)  { l.log.Error(text(format, v), "from", "nats") }

func (l *serverLog) Fatalf(format string, v ...any) {
	l.log.Error(text(format, v), "from", "nats")
	select {
	case l.fatal <- text(format, v):
	default:
	}
}

// cause is the fatal trouble, if there was one.
func (l *serverLog) cause() string {
	select {
	case s := <-l.fatal:
		return s
	default:
		return "it is not ready in time"
	}
}

func text(format string, v []any) string { return fmt.Sprintf(format, v...) }
