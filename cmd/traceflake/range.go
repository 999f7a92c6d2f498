package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/traceid"
)

func rangeCommand() *cobra.Command {
	var output, column string
	cmd := &cobra.Command{
		Use:   "range FROM TO",
		Short: "Print the bounds of the trace IDs of a time span, for SQL",
		Long: `range prints the lowest trace ID of FROM and the highest of TO. Both ends belong
to it, to the millisecond. Times before 2020 or past 2089 are moved into what
trace IDs can tell.

` + timeHelp,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
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
			default:
				err = fmt.Errorf("--output: %q is not one of %s", output, strings.Join([]string{"text", "sql", "json"}, ", "))
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text (two lines), sql (a condition) or json")
	cmd.Flags().StringVar(&column, "column", "TraceId", "column that the condition is about")
	return cmd
}
