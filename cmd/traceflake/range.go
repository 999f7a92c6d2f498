package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/traceid"
)

func rangeCommand() *cobra.Command {
	var output, column string
	outputs := []string{"text", "sql", "json"}
	cmd := &cobra.Command{
		Use:   "range FROM TO",
		Short: "Print the bounds of the trace IDs of a time span, for SQL",
		Long: `range prints the lowest trace ID of FROM and the highest of TO, both inclusive,
to the millisecond. Times before 2020 or past 2089 are clamped to the range of
trace IDs. The last hour is "now-1h now".

` + timeHelp,
		Example: `  traceflake range now-1h now
  traceflake range 2026-03-14T12:00:00Z 2026-03-14T12:05:00Z -o sql
  traceflake range now-5m now -o sql --column trace_id`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeTimes(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkChoice("output", output, outputs...); err != nil {
				return err
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
			switch output {
			case "text":
				_, err = fmt.Fprintf(out, "%s\n%s\n", low, high)
			case "sql":
				_, err = fmt.Fprintf(out, "%s BETWEEN '%s' AND '%s'\n", column, low, high)
			case "json":
				err = json.NewEncoder(out).Encode(map[string]string{"min": low, "max": high})
			}
			return err
		},
	}
	choice(cmd, &output, "output", "o", "two lines of text, an SQL condition, or JSON", outputs...)
	cmd.Flags().StringVar(&column, "column", "TraceId", "column for the SQL condition")
	return cmd
}
