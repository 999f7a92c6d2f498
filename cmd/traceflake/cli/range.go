package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
	"github.com/traceflake/traceflake/traceid"
)

// defaultSlack is how long before the time of its ID a trace may have spans.
const defaultSlack = time.Hour

func rangeCommand() *cobra.Command {
	var output *string
	var column, traceID string
	var slack time.Duration
	cmd := &cobra.Command{
		Use:   "range FROM TO | range --trace ID",
		Short: "Print bounds for queries: the trace IDs of a period, or the time of a trace",
		Long: `range prints the lowest trace ID of FROM and the highest of TO, both inclusive,
to the millisecond. A date as TO includes that day. A period that begins before 2020 or
ends after 2089, as no trace ID does, is cut. The last hour is "now-1h now".

With --trace it prints the earliest time at which that trace can have spans. There is
no upper bound, because it would exclude spans of long traces. If a search finds
nothing, repeat it without the bound.

-o sql prints a condition for ClickHouse, and -o tempo the query parameters of a search
in the period or, with --trace, of a lookup of that ID. Tempo refuses periods over 168h
by default.

With -o json it prints {"min":"1950…","max":"1950…"}, or with --trace
{"not_before":"2026-03-14T11:00:00.000Z"}.

` + timeHelp,
		Example: `  traceflake range now-1h now
  traceflake range 2026-03-14T12:00:00Z 2026-03-14T12:05:00Z -o sql
  traceflake range 2026-03-14 2026-03-15 -o sql --column trace_id
  traceflake range --trace 1950fb0f8880000086cdcca4ab608495 -o tempo`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case traceID != "":
				return cobra.NoArgs(cmd, args)
			case cmd.Flags().Changed("slack"):
				return errors.New("--slack needs --trace ID")
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var forms map[string]string
			if traceID != "" {
				forms, err = ofTrace(traceID, slack, column)
			} else {
				forms, err = ofPeriod(args[0], args[1], column)
			}
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), forms[*output])
			}
			return err
		},
	}
	output = outputFlag(cmd, "sql", "tempo")
	cmd.Flags().StringVar(&traceID, "trace", "", "trace ID to search for, instead of FROM and TO")
	durationFlag(cmd, &slack, "slack", defaultSlack,
		"with --trace, how long before the time of its ID a trace may have spans")
	cmd.Flags().StringVar(&column, "column", "TraceId", "trace ID column in the SQL condition")
	return cmd
}

// ofPeriod returns the lowest and the highest trace ID of a period, in each form of the output.
func ofPeriod(from, to, column string) (map[string]string, error) {
	now := time.Now()
	begin, _, err := parseTime(from, now)
	if err != nil {
		return nil, fmt.Errorf("FROM: %w", err)
	}
	_, end, err := parseTime(to, now)
	if err != nil {
		return nil, fmt.Errorf("TO: %w", err)
	}
	low, high := traceid.Min(begin), traceid.Max(end)
	switch first, last := traceid.Time(low), traceid.Time(high); {
	case end.Before(begin):
		err = errors.New("TO is before FROM")
	case end.Before(last), begin.Sub(first) >= time.Millisecond: // both were clamped
		err = errors.New("trace IDs have times from 2020 to 2089")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: FROM is %s, TO is %s", err,
			begin.UTC().Format(time.RFC3339Nano), end.UTC().Format(time.RFC3339Nano))
	}
	return map[string]string{
		"text": fmt.Sprintf("%s\n%s", low, high),
		"sql":  fmt.Sprintf("%s BETWEEN '%s' AND '%s'", column, low, high),
		"json": fmt.Sprintf(`{"min":"%s","max":"%s"}`, low, high),
		// Tempo has whole seconds, refuses an empty period, and one second more than 168h.
		"tempo": tempo(begin.Unix(), max(begin.Unix(), end.Add(-1).Unix())+1),
	}, nil
}

// ofTrace returns the earliest time at which a trace can have spans, in each form of the output.
func ofTrace(digits string, slack time.Duration, column string) (map[string]string, error) {
	ids, err := identify.TraceIDsIn(digits)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	id := ids[0]
	t := traceid.NotBefore(id, slack).UTC()
	if t.IsZero() {
		return nil, fmt.Errorf("--trace: %s contains no time; search without a bound", id)
	}
	const forever = 4102444800 // 2100: Tempo ignores a start without an end
	text := t.Format("2006-01-02T15:04:05.000Z")
	return map[string]string{
		"text": text,
		"sql": fmt.Sprintf("%s = '%s' AND Timestamp >= toDateTime64('%s', 3, 'UTC')", column, id,
			t.Format("2006-01-02 15:04:05.000")),
		"json":  fmt.Sprintf(`{"not_before":"%s"}`, text),
		"tempo": tempo(t.Unix(), forever),
	}, nil
}

// tempo returns Tempo's query parameters for times in Unix seconds, which it refuses before 1970.
func tempo(start, end int64) string {
	return fmt.Sprintf("end=%d&start=%d", end, max(start, 0))
}
