package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
	"github.com/traceflake/traceflake/traceid"
)

func rangeCommand() *cobra.Command {
	var output *string
	var column, traceID string
	var slack time.Duration
	cmd := &cobra.Command{
		Use:   "range FROM TO | range --trace ID",
		Short: "Print bounds for queries: the trace IDs of a period, or the time of a trace",
		Long: `range prints the lowest trace ID of FROM and the highest of TO, both inclusive,
to the millisecond. A period that begins before 2020 or ends after 2089, as no trace ID
does, is cut. The last hour is "now-1h now".

With --trace it prints the earliest time at which that trace can have spans. There is
no upper bound, because it would exclude spans of long traces. If a search finds
nothing, repeat it without the bound.

-o sql prints a condition for ClickHouse. -o tempo and -o jaeger print the query
parameters of a search in the period or, with --trace, of a lookup of that ID. Those of
Jaeger have the names of all its APIs: /api/traces, which its UI shares and which also
needs a service, and /api/v3/traces. Tempo refuses periods over 168h by default.

With -o json it prints {"min":"1950…","max":"1950…"}, or with --trace
{"not_before":"2026-03-14T11:00:00.000Z"}.

` + timeHelp,
		Example: `  traceflake range now-1h now
  traceflake range 2026-03-14T12:00:00Z 2026-03-14T12:05:00Z -o sql
  traceflake range now-5m now -o sql --column trace_id
  traceflake range now-5m now -o jaeger
  traceflake range --trace 1950fb0f8880000086cdcca4ab608495 -o tempo`,
		Args: func(cmd *cobra.Command, args []string) error {
			if traceID != "" {
				return cobra.ExactArgs(0)(cmd, args)
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			err = cmp.Or(needs(cmd, "column", "--output sql", *output == "sql"),
				needs(cmd, "slack", "--trace ID", traceID != ""))
			if err != nil {
				return err
			}
			var forms map[string]string
			if traceID != "" {
				forms, err = ofTrace(traceID, slack, quoted(column))
			} else {
				forms, err = ofPeriod(args[0], args[1], quoted(column))
			}
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), forms[*output])
			}
			return err
		},
	}
	output = choiceFlag(cmd, "output", "o", "output format", "text", "sql", "json", "tempo",
		"jaeger")
	cmd.Flags().StringVar(&traceID, "trace", "", "trace ID to search for, instead of FROM and TO")
	durationFlag(cmd, &slack, "slack", defaultSlack,
		"with --trace, how long before the time of its ID a trace may have spans")
	cmd.Flags().StringVar(&column, "column", "TraceId", "trace ID column in the SQL condition")
	return cmd
}

// ofPeriod returns the lowest and the highest trace ID of a period, in each form of the output.
func ofPeriod(from, to, column string) (map[string]string, error) {
	now := time.Now()
	begin, err := parseTime(from, now)
	if err != nil {
		return nil, fmt.Errorf("FROM: %w", err)
	}
	end, err := parseTime(to, now)
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
	// Tempo has whole seconds, and refuses a second more than its longest period, 168h. Jaeger gets
	// the whole millisecond of TO. Both refuse an empty period.
	past := end.Truncate(time.Millisecond).Add(time.Millisecond)
	jaeger := make(url.Values)
	addJaeger(jaeger, begin, "start", "query.startTimeMin", "query.start_time_min")
	addJaeger(jaeger, past, "end", "query.startTimeMax", "query.start_time_max")
	return map[string]string{
		"text":   fmt.Sprintf("%s\n%s", low, high),
		"sql":    fmt.Sprintf("%s BETWEEN '%s' AND '%s'", column, low, high),
		"json":   fmt.Sprintf(`{"min":"%s","max":"%s"}`, low, high),
		"tempo":  tempo(begin.Unix(), max(begin.Unix(), end.Add(-1).Unix())+1),
		"jaeger": jaeger.Encode(),
	}, nil
}

// ofTrace returns the earliest time at which a trace can have spans, in each form of the output.
func ofTrace(digits string, slack time.Duration, column string) (map[string]string, error) {
	ids, err := identify.TraceIDsIn(digits)
	if err == nil && len(ids) > 1 {
		err = errors.New("give one ID")
	}
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
	jaeger := make(url.Values) // whose lookups need no end
	addJaeger(jaeger, t, "start", "startTime", "start_time")
	return map[string]string{
		"text": text,
		"sql": fmt.Sprintf("%s = '%s' AND Timestamp >= toDateTime64('%s', 3, 'UTC')", column, id,
			t.Format("2006-01-02 15:04:05.000")),
		"json":   fmt.Sprintf(`{"not_before":"%s"}`, text),
		"tempo":  tempo(t.Unix(), forever),
		"jaeger": jaeger.Encode(),
	}, nil
}

// tempo returns Tempo's query parameters for times in Unix seconds, which it refuses before 1970.
func tempo(start, end int64) string {
	return fmt.Sprintf("end=%d&start=%d", end, max(start, 0))
}

// addJaeger adds a bound under the names that it has in Jaeger's APIs: micros in /api/traces; v3,
// and old before Jaeger v2.19, in /api/v3/traces.
func addJaeger(to url.Values, t time.Time, micros, v3, old string) {
	to.Set(micros, strconv.FormatInt(t.UnixMicro(), 10))
	text := t.UTC().Format(time.RFC3339Nano)
	to.Set(v3, text)
	to.Set(old, text)
}

var plainName = regexp.MustCompile(`^[A-Za-z_][\w.]*$`)

// quoted returns a column's name as SQL has it. A name that contains quotes is quoted already.
func quoted(name string) string {
	if plainName.MatchString(name) || strings.ContainsAny(name, "\"`\\") {
		return name
	}
	return `"` + name + `"`
}
