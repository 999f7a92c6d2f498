package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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
select nested fields. Records that already have an ID keep it; an empty ID field is
filled. For other formats give "new --at -" a time on each line.

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

gzip input is decompressed. Records that get no ID (before 2020, no time, truncated)
are reported with their line number and copied unchanged. The exit code is then 1.`,
		Example: `  traceflake backfill --time created_at --store bolt:leases.db <orders.ndjson >new.ndjson
  traceflake backfill --time ts --key request_id --secret-file secret old.ndjson.gz >new.ndjson
  traceflake backfill --time ts --deterministic --secret-file secret old.ndjson`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return b.run(cmd, f, args) },
	}
	f.addStore(cmd, cmd.Flags(), "store to lease nodes from")
	f.addSecret(cmd)
	cmd.Flags().StringVar(&b.options.TimeField, "time", "", "field with the record's time (required)")
	b.unit = choiceFlag(cmd, "time-format", "", "format of the time", stamp.Names...)
	cmd.Flags().StringVar(&b.options.KeyField, "key", "", "field with the correlation key")
	cmd.Flags().StringVar(&b.options.IDField, "id-field", "trace_id", "field that gets the trace ID")
	cmd.Flags().BoolVar(&b.deterministic, "deterministic", false, "derive IDs from time and key")
	cmd.Flags().BoolVarP(&b.quiet, "quiet", "q", false, "report only problems")
	return cmd
}

// backfillFlags are the flags as given, and the options that they result in.
type backfillFlags struct {
	unit                 *string
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
	stop, err := b.setNewID(cmd, f)
	if err != nil {
		return err
	}
	b.options.Report = func(line int64, err error) {
		fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: line %d: %v\n", line, err)
	}
	began := time.Now()
	stats, err := backfill.NDJSON(cmd.Context(), cmd.OutOrStdout(), in.text, b.options)
	if !b.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: %d records: %d got an ID (%d keys, %d without one), %d had one, %d reported; %s\n",
			stats.Records, stats.Added, stats.Keys, stats.Keyless, stats.Kept, stats.Failed, time.Since(began).Round(time.Millisecond))
	}
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
	case b.options.IDField == b.options.TimeField:
		return fmt.Errorf("--time and --id-field are both %q: the ID would take the place of the time", b.options.IDField)
	}
	b.options.TimeUnit = stamp.Unit(slices.Index(stamp.Names, *b.unit))
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

// input is the decompressed input.
type input struct {
	text  io.Reader
	close func() error
}

func openInput(cmd *cobra.Command, args []string) (*input, error) {
	in := &input{close: func() error { return nil }}
	raw := cmd.InOrStdin()
	if len(args) > 0 && args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		raw, in.close = file, file.Close
	}
	text, err := decompressed(raw)
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	in.text = text
	return in, nil
}
