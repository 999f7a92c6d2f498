package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/backfill"
	"github.com/traceflake/traceflake/cmd/traceflake/internal/stamp"
)

func backfillCommand(f *flags) *cobra.Command {
	var o backfill.Options
	var format, unit, comma string
	var deterministic, quiet bool
	cmd := &cobra.Command{
		Use:   "backfill --time FIELD [FILE]",
		Short: "Add trace IDs to records that predate tracing",
		Long: `backfill copies records from FILE or standard input to standard output and adds
a trace ID for each record's time. It changes no other byte of a record.

NDJSON has one object a line; the ID becomes its last field. Dots in field names
lead into nested objects. CSV follows RFC 4180 and has a header; the ID becomes
the last column. A record that already has an ID keeps it; an empty ID field is
filled.

--key gives all records with the same value in that field one trace ID, with the
time of the first of them. The keys are kept in a temporary file, at most 90
bytes each; memory does not grow. Each record without a key gets its own ID.

IDs are made as by "new": with a store and a secret they are unique in the fleet
and decode as IDs given to old records. --deterministic instead derives them
from time and key (without --key, the whole record) with the first secret: the
same input yields the same output, and the IDs do not decode. Neither kind verifies.

Numbers are read as Unix seconds below 10^11, milliseconds below 10^14,
microseconds below 10^17 and otherwise nanoseconds, unless --time-format is set.
Text is RFC 3339; a space may replace the T, and without a zone it is UTC.

gzip input is decompressed; the format is derived from the name without .gz.

Records that get no ID (before 2020, no time, truncated) are reported with
their line and copied unchanged; in CSV, complete ones get an empty cell. The exit
code is then 1.`,
		Example: `  traceflake backfill --time created_at --store bolt:leases.db <orders.ndjson >new.ndjson
  traceflake backfill --time ts --key request_id --secret-file secret old.csv.gz >new.csv
  traceflake backfill --time ts --deterministic --secret-file secret old.ndjson`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.TimeField == "" || o.IDField == "" {
				return errors.New("--time and --id-field must name a field")
			}
			if o.TimeUnit, err = stamp.ParseUnit(unit); err != nil {
				return fmt.Errorf("--time-format: %w", err)
			}
			if comma == `\t` {
				comma = "\t"
			}
			if len(comma) != 1 || strings.ContainsAny(comma, "\"\r\n") || comma[0] >= 0x80 {
				return fmt.Errorf("--comma: %q is not a single character that can separate fields", comma)
			}
			o.Comma = comma[0]
			in, name, size, err := openInput(cmd, args)
			if err != nil {
				return err
			}
			defer in.Close()
			copyAll, err := formatOf(format, strings.TrimSuffix(name, ".gz"))
			if err != nil {
				return err
			}
			stop := func() error { return nil }
			if deterministic {
				keyring, err := f.keyring(cmd)
				if err != nil {
					return err
				}
				if keyring == nil {
					return fmt.Errorf("--deterministic: %w", errNoSecret)
				}
				o.NewID = backfill.Deterministic(keyring)
			} else {
				var g generator
				if g, stop, err = f.generator(cmd); err != nil {
					return err
				}
				o.NewID = func(t time.Time, _ []byte) (trace.TraceID, error) { return g.at(t) }
			}
			o.Report = func(line int64, err error) {
				fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: line %d: %v\n", line, err)
			}
			p := &progress{w: cmd.ErrOrStderr(), size: size, start: time.Now(), quiet: quiet}
			o.Progress = p.show
			stats, err := copyAll(cmd.Context(), cmd.OutOrStdout(), in, o)
			p.done(stats)
			if err = errors.Join(err, stop()); err == nil && stats.Failed > 0 {
				err = errReported
			}
			return err
		},
	}
	f.addStore(cmd, "store to lease nodes from")
	cmd.Flags().StringVar(&o.TimeField, "time", "", "field with the record's time (required)")
	cmd.Flags().StringVar(&unit, "time-format", "auto", "format of the time: "+strings.Join(stamp.Names, ", "))
	cmd.Flags().StringVar(&o.KeyField, "key", "", "field with the correlation key")
	cmd.Flags().StringVar(&o.IDField, "id-field", "trace_id", "field that gets the trace ID")
	cmd.Flags().BoolVar(&deterministic, "deterministic", false, "derive IDs from time and key")
	cmd.Flags().StringVar(&format, "format", "", "ndjson or csv (default from the file's name, otherwise ndjson)")
	complete(cmd, "format", "ndjson", "csv")
	complete(cmd, "time-format", stamp.Names...)
	cmd.Flags().StringVar(&comma, "comma", ",", `separator of CSV fields; \t is a tab`)
	cmd.Flags().StringVar(&o.TempDir, "temp-dir", "", "directory for the temporary file of keys (default the system's)")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "report only problems, not progress")
	return cmd
}

// openInput returns the decompressed input, its name and its size; an unknown size is 0.
func openInput(cmd *cobra.Command, args []string) (io.ReadCloser, string, int64, error) {
	raw, name, size := io.NopCloser(cmd.InOrStdin()), "", int64(0)
	if len(args) > 0 && args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, "", 0, err
		}
		raw, name = file, args[0]
		info, err := file.Stat()
		if err != nil {
			return nil, "", 0, errors.Join(err, file.Close())
		}
		size = info.Size()
	}
	text, err := decompressed(raw)
	if err != nil {
		return nil, "", 0, errors.Join(err, raw.Close())
	}
	if _, ok := text.(*gzip.Reader); ok {
		size = 0 // the decompressed size is not known
	}
	return struct {
		io.Reader
		io.Closer
	}{text, raw}, name, size, nil
}

type copyFunc func(context.Context, io.Writer, io.Reader, backfill.Options) (backfill.Stats, error)

func formatOf(format, name string) (copyFunc, error) {
	if format == "" {
		format = "ndjson"
		if ext := strings.ToLower(filepath.Ext(name)); ext == ".csv" || ext == ".tsv" {
			format = "csv"
		}
	}
	switch format {
	case "ndjson":
		return backfill.NDJSON, nil
	case "csv":
		return backfill.CSV, nil
	}
	return nil, fmt.Errorf("--format: %q is not ndjson or csv", format)
}

// progress reports the progress of a run every few seconds.
type progress struct {
	w           io.Writer
	size        int64
	start, last time.Time
	quiet       bool
}

const progressEvery = 5 * time.Second

func (p *progress) show(s backfill.Stats) {
	now := time.Now()
	if p.last.IsZero() {
		p.last = p.start
	}
	if p.quiet || now.Sub(p.last) < progressEvery {
		return
	}
	p.last = now
	var b bytes.Buffer
	fmt.Fprintf(&b, "traceflake: %d records, %d MB", s.Records, s.Bytes/1e6)
	if p.size > 0 {
		fmt.Fprintf(&b, " of %d (%d %%)", p.size/1e6, 100*s.Bytes/p.size)
	}
	fmt.Fprintf(&b, ", %.0f MB/s\n", float64(s.Bytes)/1e6/now.Sub(p.start).Seconds())
	_, _ = p.w.Write(b.Bytes())
}

func (p *progress) done(s backfill.Stats) {
	if p.quiet {
		return
	}
	keys := ""
	if s.Keys > 0 {
		keys = fmt.Sprintf(" (%d keys, %d records without one)", s.Keys, s.Keyless)
	}
	fmt.Fprintf(p.w, "traceflake: %d records: %d got an ID%s, %d had one, %d reported; %s\n",
		s.Records, s.Added, keys, s.Kept, s.Failed, time.Since(p.start).Round(time.Millisecond))
}
