package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/clickhouse/migrate"
)

// clickhouseVar is the variable with the address of ClickHouse, which may contain a password.
const clickhouseVar = "TRACEFLAKE_CLICKHOUSE_DSN"

func clickhouseCommand() *cobra.Command {
	var s server
	cmd := group(&cobra.Command{
		Use:   "clickhouse",
		Short: "Create the table of spans in ClickHouse, or migrate one",
		Example: `  traceflake clickhouse create --dsn clickhouse://localhost:9000/otel
  traceflake clickhouse migrate --dry-run --dsn clickhouse://localhost:9000/otel`,
	}, clickhouseCreateCommand(&s), clickhouseMigrateCommand(&s))
	cmd.PersistentFlags().StringVar(&s.dsn, "dsn", "", "clickhouse://user:password@host:9000/database or http://…:8123/database (default $"+clickhouseVar+")")
	cmd.PersistentFlags().BoolVar(&s.dryRun, "dry-run", false, "print the SQL and change nothing")
	return cmd
}

// server is how to connect to ClickHouse.
type server struct {
	dsn    string
	dryRun bool
}

// schemaFlags are the flags that name a table and its shape.
func schemaFlags(cmd *cobra.Command, s *clickhouse.Schema) {
	cmd.Flags().StringVar(&s.Database, "database", "", "database (default the connection's)")
	cmd.Flags().StringVar(&s.Table, "table", "", "table (default otel_traces)")
	cmd.Flags().StringVar(&s.Cluster, "cluster", "", "cluster (default one server)")
	cmd.Flags().BoolVar(&s.KeepLookup, "keep-lookup", false, "keep the exporter's lookup table, for fleets with many random IDs, instead of a view")
	durationFlag(cmd, &s.TTL, "ttl", 0, "how long spans are kept, as in 30d (default forever)")
	cmd.Flags().BoolFunc("trace-first", "sort by hour and trace, not by service: for looking up traces and exporting time ranges", func(value string) error {
		on, err := strconv.ParseBool(value)
		if on {
			s.Layout = clickhouse.TraceFirst
		}
		return err
	})
}

// overlayFlag is for commands that can leave the exporter's table unchanged.
func overlayFlag(cmd *cobra.Command) *bool {
	overlay := cmd.Flags().Bool("overlay", false, "leave the exporter's table unchanged")
	cmd.MarkFlagsMutuallyExclusive("overlay", "trace-first")
	return overlay
}

func clickhouseCreateCommand(s *server) *cobra.Command {
	var schema clickhouse.Schema
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create functions, table and views",
		Long: `create creates the functions on trace IDs, the table of spans and the views named
like the exporter's lookup table. It can be run again at any time, and refuses a
table of another shape: see migrate.

With --overlay the exporter's table stays and gets one small index, on ranges of
trace IDs; with --logs so does the exporter's table of logs. --materialize builds
the index for what is already stored, too.`,
		Example: `  traceflake clickhouse create --dry-run
  traceflake clickhouse create --dsn clickhouse://localhost:9000/otel --ttl 720h
  traceflake clickhouse create --overlay --logs otel_logs --materialize`,
		Args: cobra.NoArgs,
	}
	schemaFlags(cmd, &schema)
	overlay := overlayFlag(cmd)
	var materialize bool
	cmd.Flags().StringVar(&schema.LogsTable, "logs", "", "add the index to this table of logs, too")
	cmd.Flags().BoolVar(&materialize, "materialize", false, "with --overlay or --logs, build the index for old parts and wait for it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *overlay {
			schema.Layout = clickhouse.Overlay
		}
		if materialize && !*overlay && schema.LogsTable == "" {
			return errors.New("--materialize needs --overlay or --logs: other tables are created with the index")
		}
		if s.dryRun {
			statements, err := schema.Statements()
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), clickhouse.Script(statements))
			return err
		}
		return s.with(func(db *sql.DB) error {
			if err := schema.Create(cmd.Context(), db); err != nil || !materialize {
				return err
			}
			return schema.MaterializeIndexes(cmd.Context(), db, func(left uint64) {
				fmt.Fprintf(cmd.ErrOrStderr(), "the index: %d parts left\n", left)
			})
		})
	}
	return cmd
}

func clickhouseMigrateCommand(s *server) *cobra.Command {
	var schema clickhouse.Schema
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Turn an existing table of spans into that of create",
		Long: `migrate turns the exporter's table, or one derived from it, into the table that
create creates, under the same name and with all of its spans. New spans go into
the new table from the start; the old ones follow partition by partition. The
old rows stay in the table with the suffix _old: drop it when you are satisfied.

After an error or an interruption run the same command again: it continues where
it stopped. With --dry-run it prints the statements that remain; that needs the
server, too, because they depend on its table. create --dry-run needs none.`,
		Example: `  traceflake clickhouse migrate --dry-run --dsn clickhouse://localhost:9000/otel
  traceflake clickhouse migrate --dsn clickhouse://localhost:9000/otel`,
		Args: cobra.NoArgs,
	}
	schemaFlags(cmd, &schema)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return s.with(func(db *sql.DB) error {
			if s.dryRun {
				statements, err := migrate.Statements(cmd.Context(), db, schema)
				if err != nil {
					return err
				}
				_, err = fmt.Fprint(cmd.OutOrStdout(), clickhouse.Script(statements))
				return err
			}
			bar := newProgressBar(cmd.ErrOrStderr())
			err := migrate.Run(cmd.Context(), db, schema, bar.show)
			bar.end()
			if errors.Is(err, context.Canceled) {
				return fmt.Errorf("interrupted; run the same command again to continue: %w", err)
			}
			return err
		})
	}
	return cmd
}

// with opens a connection for one call.
func (s *server) with(call func(*sql.DB) error) error {
	dsn := s.dsn
	if dsn == "" {
		dsn = os.Getenv(clickhouseVar)
	}
	if dsn == "" {
		return errors.New("clickhouse: no address: set --dsn or $" + clickhouseVar)
	}
	options, err := chgo.ParseDSN(dsn)
	if err != nil { // its text may contain the password
		return errors.New("clickhouse: the address is invalid: want clickhouse://user:password@host:9000/database or http://user:password@host:8123/database")
	}
	if !strings.Contains(dsn, "read_timeout=") {
		options.ReadTimeout = 24 * time.Hour // a statement may copy a whole partition
	}
	db := chgo.OpenDB(options)
	defer func() { _ = db.Close() }()
	err = call(db)
	var refused *chgo.Exception
	const notEnoughPrivileges = 497
	if errors.As(err, &refused) && refused.Code == notEnoughPrivileges || err != nil && strings.Contains(err.Error(), "necessary to have the grant") {
		return fmt.Errorf("%w\ngrant this to the user and run the same command again; it continues where it stopped", err)
	}
	return err
}

// progressBar shows a migration: as one line on a terminal, otherwise as one line per partition.
type progressBar struct {
	out      io.Writer
	terminal bool
	since    time.Time
	shown    bool
}

func newProgressBar(out io.Writer) *progressBar {
	b := &progressBar{out: out, since: time.Now()}
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		b.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return b
}

func (b *progressBar) show(p migrate.Progress) {
	all := max(p.Moved+p.Left, 1)
	const width = 30
	full := int(width * p.Moved / all)
	line := fmt.Sprintf("[%s%s] %3d %%  %d of %d spans, partition %s, %s", strings.Repeat("=", full), strings.Repeat(" ", width-full),
		100*p.Moved/all, p.Moved, all, p.Partition, time.Since(b.since).Round(time.Second))
	if b.terminal {
		fmt.Fprintf(b.out, "\r%s\033[K", line)
		b.shown = true
		return
	}
	fmt.Fprintln(b.out, line)
}

// end ends the line.
func (b *progressBar) end() {
	if b.shown {
		fmt.Fprintln(b.out)
	}
}
