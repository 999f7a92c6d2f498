package cli

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/term"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
	"github.com/traceflake/traceflake/cmd/traceflake/internal/waterfall"
	"github.com/traceflake/traceflake/traceid"
)

// finder is the command trace.
type finder struct {
	clickhouse spansServer
	shown      uint
	details    bool
	output     *string
	terminal   *os.File // where the output goes, or nil

	db   *sql.DB
	out  io.Writer
	done map[trace.TraceID]bool
}

func traceCommand(terminal *os.File) *cobra.Command {
	f := finder{terminal: terminal, done: make(map[trace.TraceID]bool)}
	cmd := &cobra.Command{
		Use:   "trace [ID…]",
		Short: "Find traces in ClickHouse by their IDs alone, and draw their spans",
		Long: `trace finds traces by their IDs alone in the exporter's table in ClickHouse, and
draws their spans as a tree with a bar for the time of each. IDs may have all forms that
inspect reads. Without arguments trace reads standard input, such as a log: it draws
each trace in it once, and skips lines without a trace ID.

A line begins with "!" if its span failed, above the reason.

With -o json each span is an object on a line of its own, with the columns of the
table: {"Timestamp":"2026-…","TraceId":"1950…","SpanId":"…","Events.Name":[],…}`,
		Example: `  traceflake trace <error.log
  traceflake trace "traceparent: 00-1950fb0f8880000086cdcca4ab608495-00f067aa0ba902b7-01"
  traceflake trace 1950fb0f8880000086cdcca4ab608495 --dsn clickhouse://localhost:9000/otel`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.out = cmd.OutOrStdout()
			return f.clickhouse.with(cmd.Context(), func(db *sql.DB) (err error) {
				f.db = db
				f.clickhouse.schema, err = f.clickhouse.schema.Whole(cmd.Context(), db)
				if err != nil {
					return err
				}
				return f.all(cmd, args)
			})
		},
	}
	f.clickhouse.addFlags(cmd.Flags())
	const shown = 1000
	cmd.Flags().UintVar(&f.shown, "spans", shown,
		"how many spans are drawn at most; 0 draws all")
	cmd.Flags().BoolVar(&f.details, "details", false,
		"also draw attributes, events, links and the resource")
	f.output = outputFlag(cmd)
	return cmd
}

// all prints the traces of all IDs, each once: a log has the ID of a trace in many lines.
func (f *finder) all(cmd *cobra.Command, args []string) error {
	return eachID(cmd, args, false, func(_ int, text string) (_, err error) {
		ids, problem := identify.TraceIDsIn(text)
		for _, id := range ids {
			if f.done[id] {
				continue
			}
			f.done[id] = true
			missing, err := f.one(cmd.Context(), id)
			if err != nil {
				return nil, err
			}
			problem = errors.Join(problem, missing)
		}
		return problem, nil
	})
}

// one prints a trace. If it was not found, missing describes where it was searched.
func (f *finder) one(ctx context.Context, id trace.TraceID) (missing, err error) {
	found, drawn := 0, waterfall.New(id, f.details)
	asJSON, asLines := *f.output == "json", json.NewEncoder(f.out)
	q, err := f.clickhouse.schema.Trace(id)
	if err != nil {
		return nil, err
	}
	err = eachSpan(ctx, f.db, q, func(s waterfall.Span) {
		if found++; asJSON {
			_ = asLines.Encode(s) // its error is returned again at the end
		} else {
			drawn.Add(s)
		}
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("clickhouse: %w", err)
	case found == 0:
		text := fmt.Sprintf("trace %s is not in ClickHouse's table %s", id,
			cmp.Or(f.clickhouse.schema.Table, "otel_traces"))
		if at := traceid.NotBefore(id, 0); !at.IsZero() {
			text += "; if the ID is traceflake's, its time is " + at.UTC().Format(time.RFC3339Nano)
		}
		return errors.New(text), nil
	case asJSON:
		return nil, nil
	}
	if err := drawn.Draw(f.out, f.options()); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintln(f.out)
	return nil, err
}

// options returns how traces are drawn, by what the output is.
func (f *finder) options() waterfall.Options {
	o := waterfall.Options{Width: 100, Spans: int(f.shown)}
	if f.terminal == nil {
		return o
	}
	columns, _, err := term.GetSize(int(f.terminal.Fd()))
	if err == nil && columns > 0 {
		o.Width = columns
	}
	o.Color = err == nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return o
}
