package cli

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/backfill"
)

func backfillCommand(f *flags) *cobra.Command {
	var o backfill.Options
	var deterministic bool
	cmd := &cobra.Command{
		Use:   "backfill --time FIELD [FILE]",
		Short: "Add trace IDs to records that predate tracing",
		Long: `backfill copies JSON objects, one per line, from FILE or standard input to standard
output, and adds a trace ID for each record's time as the last field. It changes no
other byte. Dots in field names select nested fields. An ID that is there is kept; an
empty one is filled. For other formats give "new --at -" a time on each line.

--key gives all records with the same value in that field one trace ID, with the
time of the first of them. Records without a key get an ID each.

IDs are generated as by "new". --deterministic instead derives them from the time and
the key (without --key, the whole record) with the first secret: the same input gives
the same output, and the IDs do not decode. Neither kind verifies.

Numbers are Unix seconds below 10^11, milliseconds below 10^14, microseconds below
10^17 and otherwise nanoseconds. Text is RFC 3339; a space may replace the T, and a
time without a zone is UTC.

gzip input is decompressed. Records that get no ID (before 2020, no time, truncated)
are reported with their line number and copied unchanged. The exit code is then 1.`,
		Example: `  traceflake backfill --time created_at --store bolt:leases.db <orders.ndjson >new.ndjson
  traceflake backfill --time ts --key request_id --secret-file secret old.ndjson.gz >new.ndjson
  traceflake backfill --time ts --deterministic --secret-file secret old.ndjson`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			switch {
			case o.TimeField == "":
				return errors.New("--time is missing: give the field with each record's time")
			case o.IDField == "" || o.IDField == o.TimeField:
				return fmt.Errorf("--id-field %q: give the field that gets the trace ID, another than that of --time", o.IDField)
			}
			in := cmd.InOrStdin()
			if len(args) > 0 && args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer file.Close()
				in = file
			}
			if in, err = decompressed(in); err != nil {
				return err
			}
			o.Report = func(line int64, problem error) {
				fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: line %d: %v\n", line, problem)
			}
			run := func() error {
				stats, err := backfill.NDJSON(cmd.Context(), cmd.OutOrStdout(), in, o)
				fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: %d records got an ID, %d had one, %d were reported\n", stats.Added, stats.Kept, stats.Failed)
				if err == nil && stats.Failed > 0 {
					err = errReported
				}
				return err
			}
			if !deterministic {
				return f.withGenerator(cmd, func(g generator) error {
					o.NewID = func(t time.Time, _ []byte) (trace.TraceID, error) { return g.at(t) }
					return run()
				})
			}
			keyring, err := f.neededKeyring("--deterministic")
			if err != nil {
				return err
			}
			o.NewID = backfill.Deterministic(keyring)
			return run()
		},
	}
	f.addStore(cmd.Flags(), "store to lease nodes from")
	f.addSecret(cmd)
	cmd.Flags().StringVar(&o.TimeField, "time", "", "field with the record's time (required)")
	cmd.Flags().StringVar(&o.KeyField, "key", "", "field with the correlation key")
	cmd.Flags().StringVar(&o.IDField, "id-field", "trace_id", "field that gets the trace ID")
	cmd.Flags().BoolVar(&deterministic, "deterministic", false, "derive IDs from time and key")
	return cmd
}
