package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/backfill"
	"github.com/traceflake/traceflake/cmd/traceflake/internal/stamp"
)

func backfillCommand(f *flags) *cobra.Command {
	var b backfillFlags
	cmd := &cobra.Command{
		Use:   "backfill --time FIELD [FILE]",
		Short: "Add trace IDs to records that predate tracing",
		Long: `backfill copies records from FILE or standard input to standard output and adds
a trace ID for each record's time. It changes no other byte of a record.

NDJSON has one object per line; the ID becomes its last field. Dots in field names
select nested fields. CSV follows RFC 4180 and has a header; the ID becomes the
last column. Records that already have an ID keep it; an empty ID field is filled.

--key gives all records with the same value in that field one trace ID, with the
time of the first of them. Keys are kept in memory, about 60 bytes each. Records
without a key get an ID each.

IDs are generated as by "new": with a store and a secret they are unique in the
fleet and decode as IDs of old records. --deterministic instead derives them from
the time and the key (without --key, the whole record) with the first secret: the
same input gives the same output, and the IDs do not decode. Neither kind verifies.

Numbers are Unix seconds below 10^11, milliseconds below 10^14, microseconds below
10^17 and otherwise nanoseconds, unless --time-format is set. Text is RFC 3339; a
space may replace the T, and a time without a zone is UTC.

gzip input is decompressed; the format is derived from the name without .gz.

Records that get no ID (before 2020, no time, truncated) are reported with their
line number and copied unchanged; in CSV, complete ones get an empty cell. The exit
code is then 1.`,
		Example: `  traceflake backfill --time created_at --store bolt:leases.db <orders.ndjson >new.ndjson
  traceflake backfill --time ts --key request_id --secret-file secret old.csv.gz >new.csv
  traceflake backfill --time ts --deterministic --secret-file secret old.ndjson`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return b.run(cmd, f, args) },
	}
	f.addStore(cmd, cmd.Flags(), "store to lease nodes from")
	cmd.Flags().StringVar(&b.options.TimeField, "time", "", "field with the record's time (required)")
	b.unit = choiceFlag(cmd, "time-format", "", "format of the time", stamp.Names...)
	cmd.Flags().StringVar(&b.options.KeyField, "key", "", "field with the correlation key")
	cmd.Flags().StringVar(&b.options.IDField, "id-field", "trace_id", "field that gets the trace ID")
	cmd.Flags().BoolVar(&b.deterministic, "deterministic", false, "derive IDs from time and key")
	b.format = choiceFlag(cmd, "format", "", "input format, derived from the file's name or content by default", "auto", "ndjson", "csv")
	cmd.Flags().StringVar(&b.comma, "comma", ",", `separator of CSV fields; \t is a tab`)
	cmd.Flags().BoolVarP(&b.quiet, "quiet", "q", false, "report only problems, not progress")
	return cmd
}

// backfillFlags are the flags as given, and the options that they result in.
type backfillFlags struct {
	unit, format         *string
	comma                string
	deterministic, quiet bool
	options              backfill.Options
}

func (b *backfillFlags) run(cmd *cobra.Command, f *flags, args []string) (err error) {
	if err := b.check(); err != nil {
		return err
	}
	in, err := openInput(cmd, args)
	if err != nil {
		return err
	}
	defer func() { _ = in.close() }()
	copyAll := backfill.NDJSON
	if isCSV, err := b.isCSV(in); err != nil {
		return err
	} else if isCSV {
		copyAll = backfill.CSV
	}
	stop, err := b.setNewID(cmd, f)
	if err != nil {
		return err
	}
	b.options.Report = func(line int64, err error) {
		fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: line %d: %v\n", line, err)
	}
	p := &progress{w: cmd.ErrOrStderr(), size: in.size, start: time.Now(), last: time.Now()}
	if b.quiet {
		p.w = io.Discard
	}
	b.options.Progress = p.show
	stats, err := copyAll(cmd.Context(), cmd.OutOrStdout(), in.text, b.options)
	p.done(stats)
	if err = errors.Join(err, stop()); err == nil && stats.Failed > 0 {
		err = errReported
	}
	return err
}

// check checks the flags and sets the options that they determine.
func (b *backfillFlags) check() error {
	switch {
	case b.options.TimeField == "":
		return errors.New("--time is missing: give the field with each record's time")
	case b.options.IDField == "":
		return errors.New("--id-field must not be empty: give the field that gets the trace ID")
	}
	b.options.TimeUnit = stamp.Unit(slices.Index(stamp.Names, *b.unit))
	if b.comma == `\t` {
		b.comma = "\t"
	}
	if len(b.comma) != 1 || strings.ContainsAny(b.comma, "\"\r\n") || b.comma[0] >= 0x80 {
		return fmt.Errorf("--comma: %q is not a single ASCII character that can separate fields", b.comma)
	}
	b.options.Comma = b.comma[0]
	return nil
}

// setNewID sets the function that generates IDs. stop releases what it needs.
func (b *backfillFlags) setNewID(cmd *cobra.Command, f *flags) (stop func() error, err error) {
	if !b.deterministic {
		g, stop, err := f.generator(cmd)
		b.options.NewID = func(t time.Time, _ []byte) (trace.TraceID, error) { return g.at(t) }
		return stop, err
	}
	keyring, err := f.keyring()
	if err == nil && keyring == nil {
		err = fmt.Errorf("--deterministic: %w", errNoSecret)
	}
	if err != nil {
		return nil, err
	}
	b.options.NewID = backfill.Deterministic(keyring)
	return func() error { return nil }, nil
}

// isCSV reports whether the input is CSV rather than NDJSON.
func (b *backfillFlags) isCSV(in *input) (bool, error) {
	if *b.format != "auto" {
		return *b.format == "csv", nil
	}
	switch strings.ToLower(filepath.Ext(strings.TrimSuffix(in.name, ".gz"))) {
	case ".csv", ".tsv":
		return true, nil
	case ".ndjson", ".jsonl", ".json":
		return false, nil
	}
	head, _ := in.text.Peek(in.text.Size()) // an error is returned again by the next read
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\uFEFF")))
	if len(head) > 0 && head[0] != '{' {
		return false, errors.New("the input does not begin with a JSON object: give --format csv or --format ndjson")
	}
	return false, nil
}

// input is the decompressed input.
type input struct {
	text  *bufio.Reader
	close func() error
	name  string
	size  int64 // 0 if it is not known
}

func openInput(cmd *cobra.Command, args []string) (*input, error) {
	in := &input{close: func() error { return nil }}
	raw := cmd.InOrStdin()
	if len(args) > 0 && args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		raw, in.name, in.close = file, args[0], file.Close
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			in.size = info.Size()
		}
	}
	text, err := decompressed(raw)
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	if _, ok := text.(*gzip.Reader); ok {
		in.size = 0
	}
	in.text = bufio.NewReader(text)
	return in, nil
}

// progress reports the progress of a run every few seconds.
type progress struct {
	w           io.Writer
	size        int64
	start, last time.Time
}

const progressEvery = 5 * time.Second

func (p *progress) show(s backfill.Stats) {
	if time.Since(p.last) < progressEvery {
		return
	}
	p.last = time.Now()
	of := ""
	if p.size > 0 {
		of = fmt.Sprintf(" of %d (%d %%)", p.size/1e6, 100*s.Bytes/p.size)
	}
	fmt.Fprintf(p.w, "traceflake: %d records, %d MB%s, %.0f MB/s\n",
		s.Records, s.Bytes/1e6, of, float64(s.Bytes)/1e6/time.Since(p.start).Seconds())
}

func (p *progress) done(s backfill.Stats) {
	keys := ""
	if s.Keys > 0 {
		keys = fmt.Sprintf(" (%d keys, %d records without one)", s.Keys, s.Keyless)
	}
	fmt.Fprintf(p.w, "traceflake: %d records: %d got an ID%s, %d had one, %d reported; %s\n",
		s.Records, s.Added, keys, s.Kept, s.Failed, time.Since(p.start).Round(time.Millisecond))
}
