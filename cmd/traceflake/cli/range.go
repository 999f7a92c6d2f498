package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/lookup"
	"github.com/traceflake/traceflake/traceid"
)

func rangeCommand() *cobra.Command {
	var output *string
	var column, timeColumn, traceID string
	var slack time.Duration
	cmd := &cobra.Command{
		Use:   "range FROM TO | range --trace ID",
		Short: "Print bounds for queries: the trace IDs of a period, or the time of a trace",
		Long: `range prints the lowest trace ID of FROM and the highest of TO, both inclusive,
to the millisecond. Times before 2020 or after 2089 are clamped to the range of
trace IDs. The last hour is "now-1h now".

With --trace it prints the earliest time at which that trace can have spans, as
text, JSON, an SQL condition for ClickHouse, or query parameters for Tempo or
Jaeger. There is no upper bound, because it would exclude spans of long traces.
If a search finds nothing, repeat it without the bound.

With -o json it prints {"min":"1950…","max":"1950…"}, or with --trace
{"not_before":"2026-03-14T11:00:00.000Z"}.

` + timeHelp,
		Example: `  traceflake range now-1h now
  traceflake range 2026-03-14T12:00:00Z 2026-03-14T12:05:00Z -o sql
  traceflake range now-5m now -o sql --column trace_id
  traceflake range --trace 1950fb0f8880000086cdcca4ab608495 -o tempo`,
		Args: func(cmd *cobra.Command, args []string) error {
			if traceID != "" {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if traceID != "" {
				return printBound(cmd, traceID, slack, *output, column, timeColumn)
			}
			for _, name := range []string{"slack", "time-column"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s needs --trace ID", name)
				}
			}
			if slices.Contains([]string{"tempo", "jaeger"}, *output) {
				return fmt.Errorf("--output %s needs --trace ID", *output)
			}
			now := time.Now()
			from, err := parseTime(args[0], now)
			if err != nil {
				return fmt.Errorf("FROM: %w", err)
			}
			to, err := parseTime(args[1], now)
			if err != nil {
				return fmt.Errorf("TO: %w", err)
			}
			if to.Before(from) {
				return fmt.Errorf("TO, %s, is before FROM, %s", to.UTC().Format(time.RFC3339Nano), from.UTC().Format(time.RFC3339Nano))
			}
			low, high := traceid.Min(from).String(), traceid.Max(to).String()
			out := cmd.OutOrStdout()
			switch *output {
			case "text":
				_, err = fmt.Fprintf(out, "%s\n%s\n", low, high)
			case "sql":
				_, err = fmt.Fprintf(out, "%s BETWEEN '%s' AND '%s'\n", quoted(column), low, high)
			case "json":
				err = json.NewEncoder(out).Encode(map[string]string{"min": low, "max": high})
			}
			return err
		},
	}
	output = choiceFlag(cmd, "output", "o", "form of the bounds", "text", "sql", "json", "tempo", "jaeger")
	cmd.Flags().StringVar(&traceID, "trace", "", "trace ID to search for, instead of FROM and TO")
	durationFlag(cmd, &slack, "slack", lookup.DefaultSlack, "with --trace, how long before the time of its ID a trace may have spans")
	cmd.Flags().StringVar(&timeColumn, "time-column", "Timestamp", "with --trace, the time column in the SQL condition")
	cmd.Flags().StringVar(&column, "column", "TraceId", "trace ID column in the SQL condition")
	return cmd
}

// printBound prints the earliest time at which a trace can have spans.
func printBound(cmd *cobra.Command, digits string, slack time.Duration, output, column, timeColumn string) error {
	id, err := trace.TraceIDFromHex(strings.ToLower(strings.ReplaceAll(digits, "-", "")))
	if err != nil {
		return fmt.Errorf("--trace: %q is not a trace ID of 32 hex digits", digits)
	}
	if slack < 0 {
		return errors.New("--slack must not be negative")
	}
	t := traceid.NotBefore(id, slack)
	if t.IsZero() {
		return fmt.Errorf("--trace: %s contains no time; search without a bound", id)
	}
	text := t.UTC().Format("2006-01-02T15:04:05.000Z")
	out := cmd.OutOrStdout()
	switch output {
	case "text":
		_, err = fmt.Fprintln(out, text)
	case "sql":
		_, err = fmt.Fprintf(out, "%s = '%s' AND %s >= toDateTime64('%s', 3, 'UTC')\n", quoted(column), id, quoted(timeColumn), t.UTC().Format("2006-01-02 15:04:05.000"))
	case "json":
		err = json.NewEncoder(out).Encode(map[string]string{"not_before": text})
	case "tempo": // it ignores a start without an end
		_, err = fmt.Fprintf(out, "end=%d&start=%d\n", time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), t.Unix())
	case "jaeger":
		_, err = fmt.Fprintf(out, "startTime=%s\n", url.QueryEscape(t.UTC().Format(time.RFC3339Nano)))
	}
	return err
}

var plainName = regexp.MustCompile(`^[A-Za-z_][\w.]*$`)

// quoted returns a column's name as SQL has it. A name that contains quotes is quoted already.
func quoted(name string) string {
	if plainName.MatchString(name) || strings.ContainsAny(name, "\"`\\") {
		return name
	}
	return `"` + name + `"`
}
