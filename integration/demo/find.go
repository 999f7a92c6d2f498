package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/traceflake/traceflake/integration/servers"
)

// build builds a program of this repository into a folder, and returns its path.
func build(ctx context.Context, dir, folder string) (string, error) {
	program := filepath.Join(dir, path.Base(folder))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program,
		"github.com/traceflake/traceflake/"+folder)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	return program, nil
}

// find finds the trace of a request by its ID, draws it, and prints what ClickHouse read.
func find(ctx context.Context, out io.Writer, engine *servers.Engine, r request) (err error) {
	dir, err := os.MkdirTemp("", "traceflake-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := build(ctx, dir, "cmd/traceflake")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "trace", r.id.String(), "--dsn", engine.DSN())
	drawn, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, drawn)
	}
	fmt.Fprintf(out, "Found       a trace from %s, by its ID:\n\n%s", r.client.name, drawn)
	if err := engine.Exec(ctx, copyTo+" WHERE ServiceName IN ('shop', 'orders')"); err != nil {
		return err
	}
	if err := compare(ctx, out, engine, r,
		"before merging, with the new spans in a separate part"); err != nil {
		return err
	}
	if err := engine.Exec(ctx, "OPTIMIZE TABLE otel_traces FINAL", "OPTIMIZE TABLE "+exporters+
		" FINAL"); err != nil {
		return err
	}
	return compare(ctx, out, engine, r, "after merging")
}

// compare prints what ClickHouse reads for a query by ID in both tables, as bars.
func compare(ctx context.Context, out io.Writer, engine *servers.Engine, r request,
	state string) error {
	tables := []string{"otel_traces", exporters}
	reads, most := make([]servers.Reads, len(tables)), uint64(1)
	for i, table := range tables {
		found, err := engine.Query(ctx,
			fmt.Sprintf("SELECT ServiceName, SpanName, Duration FROM %s WHERE TraceId = '%s'",
				table, r.id))
		if err != nil {
			return err
		}
		if len(found.Rows) != spansOfRequest {
			return fmt.Errorf("%d spans of the trace are in %s, want %d", len(found.Rows), table,
				spansOfRequest)
		}
		reads[i] = found.Read
		most = max(most, found.Read.Bytes)
	}
	fmt.Fprintf(out, "Read        %s:\n", state)
	const width = 40
	for i, table := range tables {
		bar := strings.Repeat("█", max(1, int(reads[i].Bytes*width/most)))
		fmt.Fprintf(out, "  %-16s %-*s %6d rows, %5d kB\n", table, width, bar, reads[i].Rows,
			reads[i].Bytes/1000)
	}
	return nil
}
