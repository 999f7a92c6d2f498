package cli

import (
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
}

func traceCommand(terminal *os.File) *cobra.Command {
	f := finder{terminal: terminal}
	cmd := &cobra.Command{
		Use:   "trace [ID…]",
		Short: "Find traces by their IDs alone, and draw their spans",
		Long: `trace finds traces by their IDs alone and draws their spans as a tree with a bar for
the time of each. It reads the exporter's tables in ClickHouse or, with --tempo or
--jaeger, another server. IDs may have all forms that inspect reads; without arguments
trace reads standard input line by line, such as a log.

A line begins with "!" if its span failed, and with "~" if the span is late: it starts
more than an hour before or after the time in the trace ID.

With -o json each line is OTLP JSON: up to 1000 spans of a trace, and with --logs a log
record.`,
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
	flags.Uint16Var(&f.width, "width", 0, "columns (default the terminal's, or 100)")
	cmd.MarkFlagsMutuallyExclusive("dsn", "tempo", "jaeger")
	f.output = choiceFlag(cmd, "output", "o", "output format; json is OTLP JSON", "text", "json")
	return cmd
}

func (f *finder) run(cmd *cobra.Command, args []string) error {
	if f.width == 0 {
		f.width = f.columns()
	}
	return f.from(cmd.Context(), func(source spans.Source) error {
		return eachID(cmd, args, func(_ int, text string, problem error) (_, err error) {
			if problem != nil {
				return problem, nil
			}
			ids, problem := identify.TraceIDsIn(text)
			for _, id := range ids {
				missing, err := f.one(cmd.Context(), cmd.OutOrStdout(), source, id)
				if err != nil {
					return nil, err
				}
				problem = errors.Join(problem, missing)
			}
			return problem, nil
		})
	})
}

// columns returns the width of the terminal.
func (f *finder) columns() uint16 {
	const unknown = 100
	if f.terminal != nil {
		if width, _, err := term.GetSize(int(f.terminal.Fd())); err == nil && width > 0 {
			return uint16(width)
		}
	}
	return unknown
}

// from calls call with the source that the flags name.
func (f *finder) from(ctx context.Context, call func(spans.Source) error) error {
	other := spans.NewTempo
	address := f.tempo
	switch {
	case f.jaeger != "":
		other, address = spans.NewJaeger, f.jaeger
	case f.tempo == "" && len(f.headers) > 0:
		return errors.New("--header needs --tempo or --jaeger")
	case f.tempo == "":
		return f.clickhouse.with(ctx, func(db *sql.DB) error {
			return call(spans.ClickHouse{DB: db, Schema: f.clickhouse.schema})
		})
	}
	if f.logs {
		return errors.New("--logs: only ClickHouse stores logs")
	}
	header := make(http.Header)
	for _, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return fmt.Errorf(`--header: want "Name: value"`)
		}
		header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	source, err := other(address, header)
	if err != nil {
		return err
	}
	return call(source)
}

// one prints a trace. If it was not found, missing describes where it was searched.
func (f *finder) one(
	ctx context.Context, out io.Writer, source spans.Source, id trace.TraceID,
) (missing, err error) {
	print := f.text
	if *f.output == "json" {
		print = f.json
	}
	found, err := print(ctx, out, source, id)
	if err != nil || found {
		return nil, err
	}
	text := fmt.Sprintf("trace %s is not in %s", id, source)
	if at := traceid.NotBefore(id, 0); !at.IsZero() {
		text += "; if the ID is traceflake's, its time is " + at.UTC().Format(time.RFC3339Nano)
	}
	return errors.New(text), nil
}

// text draws a trace, and prints its logs below.
func (f *finder) text(
	ctx context.Context, out io.Writer, source spans.Source, id trace.TraceID,
) (found bool, err error) {
	t := waterfall.New(id)
	err = source.Trace(ctx, id, func(td ptrace.Traces) error {
		t.Add(td)
		return nil
	})
	if err != nil || t.Len() == 0 {
		return false, err
	}
	color := f.terminal != nil && term.IsTerminal(int(f.terminal.Fd())) &&
		os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if err := t.Draw(out,
		waterfall.Options{Width: int(f.width), Color: color, Spans: int(f.shown)}); err != nil {
		return true, err
	}
	if f.logs {
		fmt.Fprintln(out, "\n   LOGS")
		err = source.Logs(ctx, id, func(logs plog.Logs) error { return t.DrawLogs(out, logs) })
	}
	fmt.Fprintln(out)
	return true, err
}

// json prints the parts of a trace, and of its logs, as lines of OTLP JSON.
func (f *finder) json(
	ctx context.Context, out io.Writer, source spans.Source, id trace.TraceID,
) (found bool, err error) {
	line := func(body []byte, err error) error {
		if err == nil {
			found = true
			_, err = fmt.Fprintf(out, "%s\n", body)
		}
		return err
	}
	var traces ptrace.JSONMarshaler
	err = source.Trace(ctx, id,
		func(td ptrace.Traces) error { return line(traces.MarshalTraces(td)) })
	if f.logs && found && err == nil {
		var logs plog.JSONMarshaler
		err = source.Logs(ctx, id, func(l plog.Logs) error { return line(logs.MarshalLogs(l)) })
	}
	return found, err
}
