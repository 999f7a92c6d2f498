package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/clickhouse"
)

// clickhouseVar is the variable with the address of ClickHouse, which may contain a password.
const clickhouseVar = "TRACEFLAKE_CLICKHOUSE_DSN"

func clickhouseCommand() *cobra.Command {
	var s server
	cmd := group(&cobra.Command{
		Use:     "clickhouse",
		Short:   "Create the spans table in ClickHouse",
		Example: `  traceflake clickhouse create --dsn clickhouse://localhost:9000/otel`,
	}, clickhouseCreateCommand(&s))
	cmd.PersistentFlags().StringVar(&s.dsn, "dsn", "", "clickhouse://user:password@host:9000/database or http://…:8123/database (default $"+clickhouseVar+")")
	cmd.PersistentFlags().BoolVar(&s.dryRun, "dry-run", false, "print the SQL and change nothing")
	return cmd
}

// server are the flags for a connection to ClickHouse.
type server struct {
	dsn    string
	dryRun bool
}

// schemaFlags adds the flags for a table and its schema.
func schemaFlags(cmd *cobra.Command, s *clickhouse.Schema) {
	cmd.Flags().StringVar(&s.Database, "database", "", "database (default the connection's)")
	cmd.Flags().StringVar(&s.Table, "table", "", "table (default otel_traces)")
	cmd.Flags().StringVar(&s.Cluster, "cluster", "", "cluster (default one server)")
	cmd.Flags().BoolVar(&s.KeepLookup, "keep-lookup", false, "keep the exporter's lookup table, for fleets with many random IDs, instead of a view")
	durationFlag(cmd, &s.TTL, "ttl", 0, "how long spans are kept, as in 30d (default forever)")
	cmd.Flags().BoolFunc("trace-first", "sort by hour and trace instead of service: for trace lookups and exports of time ranges", func(value string) error {
		on, err := strconv.ParseBool(value)
		if on {
			s.Layout = clickhouse.TraceFirst
		}
		return err
	})
}

func clickhouseCreateCommand(s *server) *cobra.Command {
	var schema clickhouse.Schema
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create functions, table and views",
		Long: `create creates the functions on trace IDs, the spans table, and views with the
names of the exporter's lookup table. It can be run again at any time. A table with
another schema is refused.

With --overlay the exporter's table stays and gets one small index on trace ID
ranges; with --logs the exporter's logs table gets one, too. --materialize also
builds the index for the rows that are already stored.`,
		Example: `  traceflake clickhouse create --dry-run
  traceflake clickhouse create --dsn clickhouse://localhost:9000/otel --ttl 720h
  traceflake clickhouse create --overlay --logs otel_logs --materialize`,
		Args: cobra.NoArgs,
	}
	schemaFlags(cmd, &schema)
	overlay := cmd.Flags().Bool("overlay", false, "keep the exporter's table")
	cmd.MarkFlagsMutuallyExclusive("overlay", "trace-first")
	var materialize bool
	cmd.Flags().StringVar(&schema.LogsTable, "logs", "", "also add the index to this logs table")
	cmd.Flags().BoolVar(&materialize, "materialize", false, "with --overlay or --logs, build the index for stored rows and wait for it")
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
				fmt.Fprintf(cmd.ErrOrStderr(), "building the index: %d parts left\n", left)
			})
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
	db := chgo.OpenDB(options)
	defer func() { _ = db.Close() }()
	err = call(db)
	var refused *chgo.Exception
	const notEnoughPrivileges = 497
	if errors.As(err, &refused) && refused.Code == notEnoughPrivileges {
		return fmt.Errorf("%w\ngrant this to the user and run the same command again; it continues where it stopped", err)
	}
	return err
}
