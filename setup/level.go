package setup

import (
	"errors"
	"log/slog"

	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/lease"
)

// Level returns the level at which to log an error that an OpenTelemetry error handler gets: Info if
// something has recovered, Error if an operator has to change something ([lease.Permanent],
// [ErrConfig]), and otherwise Warn.
func Level(err error) slog.Level {
	var recovered reports.Recovered
	switch {
	case errors.As(err, &recovered):
		return slog.LevelInfo
	case lease.Permanent(err), errors.Is(err, ErrConfig):
		return slog.LevelError
	}
	return slog.LevelWarn
}
