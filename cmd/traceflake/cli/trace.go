package cli

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/term"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/identify"
	"github.com/traceflake/traceflake/cmd/traceflake/internal/spans"
	"github.com/traceflake/traceflake/cmd/traceflake/internal/waterfall"
	"github.com/traceflake/traceflake/traceid"
)

// finder is the command trace.
type finder struct {
	clickhouse    spansServer
	tempo, jaeger string
	headers       []string
	logs          bool
	shown         uint
	width         uint16
	output        *string
	terminal      *os.File // where the output goes, or nil

	source spans.Source
	out    io.Writer
	color  bool
}

func traceCommand(terminal *os.File) *cobra.Command {
	f := finder{terminal: terminal}
	cmd := &cobra.Command{
		Use:   "trace [ID…]",
		Short: "Find traces by their IDs alone, and draw their spans",
		Long: `trace finds traces by their IDs alone and draws their spans as a tree with a bar for
the time of each. It reads the exporter's tables in ClickHouse or, with --tempo or
--jaeger, another server. IDs may have all forms that inspect reads; without arguments
trace reads standard input line by line, such as a log. It draws each trace once.

A line begins with "!" if its span failed, and with "~" if the span is late: it starts
more than an hour before or after the time in the trace ID.

With -o json each line is OTLP JSON: spans of a trace, 1000 of those in ClickHouse and
all of those in Tempo or Jaeger, or with --logs a log record.`,
		Example: `  traceflake trace --tempo http://localhost:3200 <error.log
  traceflake trace "traceparent: 00-1950fb0f8880000086cdcca4ab608495-00f067aa0ba902b7-01" --logs
  traceflake trace 1950fb0f8880000086cdcca4ab608495 --dsn clickhouse://localhost:9000/otel`,
		Args: cobra.ArbitraryArgs,
		RunE: f.run,
	}
	flags := cmd.Flags()
	f.clickhouse.addFlags(flags)
	flags.StringVar(&f.tempo, "tempo", "", "address of a Tempo, as in http://localhost:3200")
	flags.StringVar(&f.jaeger, "jaeger", "", "address of a Jaeger, as in http://localhost:16686")
	flags.StringArrayVar(&f.headers, "header", nil,
		`header for Tempo or Jaeger, as in "X-Scope-OrgID: 1"`)
	flags.BoolVar(&f.logs, "logs", false,
		"also print the logs of the trace, which ClickHouse stores")
	flags.StringVar(&f.clickhouse.schema.LogsTable, "logs-table", "",
		"table of logs (default otel_logs)")
	const shown = 1000
	flags.UintVar(&f.shown, "spans", shown, "how many spans are drawn at most; 0 draws all")
	flags.Uint16Var(&f.width, "width", 0, "columns, 60 or more (default the terminal's, or 100)")
	for _, flag := range []string{"dsn", "database", "table", "cluster", "logs"} {
		cmd.MarkFlagsMutuallyExclusive(flag, "tempo", "jaeger")
	}
	f.output = choiceFlag(cmd, "output", "o", "output format; json is OTLP JSON", "text", "json")
	return cmd
}

func (f *finder) run(cmd *cobra.Command, args []string) (err error) {
	http := cmd.Flags().Changed("tempo") || cmd.Flags().Changed("jaeger")
	err = cmp.Or(needs(cmd, "header", "--tempo or --jaeger", http),
		needs(cmd, "logs-table", "--logs", f.logs))
	if err != nil {
		return err
	}
	f.out = cmd.OutOrStdout()
	f.look()
	if http {
		if f.source, err = f.server(); err != nil {
			return err
		}
		return f.all(cmd, args)
	}
	return f.clickhouse.with(cmd.Context(), func(db *sql.DB) error {
		f.source = spans.ClickHouse{DB: db, Schema: f.clickhouse.schema}
		return f.all(cmd, args)
	})
}

// look sets how traces are drawn, by what the output is.
func (f *finder) look() {
	width := 100
	if f.terminal != nil {
		columns, _, err := term.GetSize(int(f.terminal.Fd()))
		if err == nil && columns > 0 {
			width = columns
		}
		f.color = err == nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	f.width = cmp.Or(f.width, uint16(width))
}

// server returns the Tempo or Jaeger that the flags name.
func (f *finder) server() (spans.Source, error) {
	header := make(http.Header)
	for _, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, errors.New(`--header: want "Name: value"`)
		}
		header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if f.jaeger != "" {
		return spans.NewJaeger(f.jaeger, header)
	}
	return spans.NewTempo(f.tempo, header)
}

// all prints the traces of all IDs, each once: a log has the ID of a trace in many lines.
func (f *finder) all(cmd *cobra.Command, args []string) error {
	done := make(map[trace.TraceID]bool)
	return eachID(cmd, args, func(_ int, text string, problem error) (_, err error) {
		if problem != nil {
			return problem, nil
		}
		ids, problem := identify.TraceIDsIn(text)
		for _, id := range ids {
			if done[id] {
				continue
			}
			done[id] = true
			missing, err := f.one(cmd.Context(), id)
			if err != nil {
				return nil, err
			}
			problem = errors.Join(problem, missing)
		}
		return problem, nil
	})
}

// one prints a trace. If it was not found, missing describes where it was searched; if a part was
// found, missing says so.
func (f *finder) one(ctx context.Context, id trace.TraceID) (missing, err error) {
	found, asJSON, drawn := 0, *f.output == "json", waterfall.New(id)
	err = f.source.Trace(ctx, id, func(td ptrace.Traces) error {
		found += td.SpanCount()
		if asJSON {
			return f.line(new(ptrace.JSONMarshaler).MarshalTraces(td))
		}
		drawn.Add(td)
		return nil
	})
	if errors.Is(err, spans.ErrPartial) {
		missing, err = fmt.Errorf("trace %s: %w", id, err), nil
	}
	switch {
	case err != nil:
		return nil, err
	case found == 0:
		return f.missing(id), nil
	case !asJSON:
		err = drawn.Draw(f.out,
			waterfall.Options{Width: int(f.width), Color: f.color, Spans: int(f.shown)})
	}
	if f.logs && err == nil {
		if !asJSON {
			fmt.Fprintln(f.out, "\n   LOGS")
		}
		err = f.source.Logs(ctx, id, func(l plog.Logs) error {
			if asJSON {
				return f.line(new(plog.JSONMarshaler).MarshalLogs(l))
			}
			return drawn.DrawLogs(f.out, l)
		})
	}
	if !asJSON {
		fmt.Fprintln(f.out)
	}
	return missing, err
}

// missing returns the error for a trace that was not found.
func (f *finder) missing(id trace.TraceID) error {
	text := fmt.Sprintf("trace %s is not in %s", id, f.source)
	if at := traceid.NotBefore(id, 0); !at.IsZero() {
		text += "; if the ID is traceflake's, its time is " + at.UTC().Format(time.RFC3339Nano)
	}
	return errors.New(text)
}

// line prints a line of JSON, unless it could not be marshaled.
func (f *finder) line(body []byte, err error) error {
	if err == nil {
		_, err = fmt.Fprintf(f.out, "%s\n", body)
	}
	return err
}
