package cli

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/traceflake/traceflake/clickhouse"
)

// clickhouseVar is the variable with the address of ClickHouse, which may contain a password.
const clickhouseVar = "TRACEFLAKE_CLICKHOUSE_DSN"

func clickhouseCommand() *cobra.Command {
	var s spansServer
	cmd := group(&cobra.Command{
		Use:   "clickhouse",
		Short: "Create the spans table in ClickHouse, or adopt one",
		Example: `  traceflake clickhouse create --dsn clickhouse://localhost:9000/otel
  traceflake clickhouse adopt prepare --dry-run`,
	}, clickhouseCreateCommand(&s), clickhouseAdoptCommand(&s), clickhouseStatusCommand(&s))
	flags := cmd.PersistentFlags()
	s.addFlags(flags)
	flags.BoolVar(&s.dryRun, "dry-run", false, "print the SQL and change nothing")
	return cmd
}

// spansServer holds the flags for a connection to ClickHouse and for the table of spans.
type spansServer struct {
	dsn    string
	dryRun bool
	schema clickhouse.Schema
}

// addFlags adds the flags that name a server and its table of spans.
func (s *spansServer) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.dsn, "dsn", "", "clickhouse://user:password@host:9000/database or "+
		"http://…:8123/database (default $"+clickhouseVar+")")
	flags.StringVar(&s.schema.Database, "database", "", "database (default the connection's)")
	flags.StringVar(&s.schema.Table, "table", "", "table (default otel_traces)")
	flags.StringVar(&s.schema.Cluster, "cluster", "", "cluster (default one server)")
}

func clickhouseCreateCommand(s *spansServer) *cobra.Command {
	schema := &s.schema
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create functions and tables",
		Long: `create creates the functions on trace IDs, the spans table, and the exporter's
lookup table with the view that fills it. It can be run again at any time, with another
--ttl too. A table with another schema is refused: see adopt.

With --overlay the exporter's table stays and gets one small index on trace ID
ranges; with --logs the exporter's logs table gets one, too. --materialize also
builds the index for the rows that are already stored.

--dry-run without an address prints the SQL for a new table; with one it first
looks at the server.`,
		Example: `  traceflake clickhouse create --dry-run
  traceflake clickhouse create --dsn clickhouse://localhost:9000/otel --ttl 30d
  traceflake clickhouse create --overlay --logs otel_logs --materialize`,
	}
	durationFlag(cmd, &schema.TTL, "ttl", 0, "how long spans are kept, as in 30d (default "+
		"forever, or as in the table that exists)")
	cmd.Flags().BoolVar(&schema.Overlay, "overlay", false, "keep the exporter's table")
	cmd.Flags().StringVar(&schema.LogsTable, "logs", "", "also add the index to this logs table")
	cmd.Flags().BoolVar(&schema.Materialize, "materialize", false,
		"with --overlay or --logs, build the index for stored rows and wait for it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if schema.Materialize && !schema.Overlay && schema.LogsTable == "" {
			return errors.New("--materialize needs --overlay or --logs: other tables are created " +
				"with the index")
		}
		create := func(db *sql.DB) error {
			plan, err := schema.Plan(cmd.Context(), db)
			if err != nil {
				return err
			}
			return s.run(cmd, db, plan)
		}
		if s.dryRun && s.address() == "" {
			return create(nil)
		}
		return s.with(create)
	}
	return cmd
}

func clickhouseAdoptCommand(s *spansServer) *cobra.Command {
	var (
		skipAccess, dropHistory bool
		day                     string
	)
	step := func(name, short string, plan makePlan) *cobra.Command {
		return &cobra.Command{
			Use:   name,
			Short: short,
			Example: "  traceflake clickhouse adopt " + name +
				" --dsn clickhouse://localhost:9000/otel",
			RunE: func(cmd *cobra.Command, _ []string) error {
				return s.with(func(db *sql.DB) error {
					a := s.adoption()
					a.SkipAccess = skipAccess
					p, err := plan(a, cmd.Context(), db)
					if err != nil {
						return err
					}
					if err := s.run(cmd, db, p); err != nil || s.dryRun {
						return err
					}
					printPhase(cmd.OutOrStdout(), p.Phase)
					return nil
				})
			},
		}
	}
	prepare := step("prepare", "Create the new table and the view of both",
		clickhouse.Adoption.Prepare)
	prepare.Flags().BoolVar(&skipAccess, "skip-access", false,
		"leave out row policies and grants, and print them")
	finish := step("finish", "Drop the old table, when it is empty, and the view of both",
		func(a clickhouse.Adoption, ctx context.Context, db *sql.DB) (clickhouse.Plan, error) {
			return a.Finish(ctx, db, dropHistory)
		})
	finish.Flags().BoolVar(&dropHistory, "drop-history", false,
		"drop the spans that the old table still holds")
	copies := step("copy", "Move spans of the other table into the one that the Collector writes "+
		"to, a day after another",
		func(a clickhouse.Adoption, ctx context.Context, db *sql.DB) (clickhouse.Plan, error) {
			if day == "" {
				return a.Copy(ctx, db, time.Time{})
			}
			of, err := time.Parse(time.DateOnly, day)
			if err != nil {
				return clickhouse.Plan{}, fmt.Errorf("--day %q: write it as in 2026-11-20", day)
			}
			return a.Copy(ctx, db, of)
		})
	copies.Flags().StringVar(&day, "day", "", "only this day, as in 2026-11-20 (default all, the "+
		"newest first)")
	return group(&cobra.Command{
		Use:   "adopt",
		Short: "Put a new table in the place of the exporter's, without copying",
		Long: `adopt puts a table like that of create in the place of an existing one, under its
name and without copying spans: neither the Collector nor the tools change. prepare
creates the new table alongside the old one, with its TTL, storage policy, engine and
your own columns; swap exchanges their names; undo exchanges them back; finish drops
the old table when its spans have expired. Until then tools show only new spans under
the name; a view, otel_traces_all, shows both, and copy moves the old ones over.

Each step can be repeated, prints what it did, how to undo it and what comes next, and
with --dry-run prints its SQL and changes nothing.`,
		Example: `  traceflake clickhouse adopt prepare
  traceflake clickhouse adopt swap`,
	},
		prepare,
		step("swap", "Give the new table the name that the Collector writes to",
			clickhouse.Adoption.Swap),
		step("undo", "Give the old table its name back", clickhouse.Adoption.Undo),
		copies,
		step("cancel", "Drop what prepare created", clickhouse.Adoption.Cancel),
		finish)
}

type makePlan func(clickhouse.Adoption, context.Context, *sql.DB) (clickhouse.Plan, error)

// adoption is the adoption of the table that the flags name.
func (s *spansServer) adoption() clickhouse.Adoption {
	return clickhouse.Adoption{Database: s.schema.Database, Table: s.schema.Table,
		Cluster: s.schema.Cluster}
}

func clickhouseStatusCommand(s *spansServer) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the spans table, and how far its adoption is",
		Example: "  traceflake clickhouse status --dsn clickhouse://localhost:9000/otel",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.with(func(db *sql.DB) error {
				status, err := s.adoption().Status(cmd.Context(), db)
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				for _, t := range status.Tables {
					printStatus(out, t)
				}
				if why := status.Problem; why != nil {
					_, err = fmt.Fprintln(out, "cannot be adopted:", why)
					return err
				}
				printPhase(out, status.Phase)
				return nil
			})
		},
	}
}

func printPhase(out io.Writer, p clickhouse.Phase) {
	fmt.Fprintf(out, "the adoption is %s; next: %s\n", p, p.Next())
}

func printStatus(out io.Writer, t clickhouse.TableStatus) {
	name, ordered, expires, spans := t.Table, "no spans", "never", fmt.Sprint(t.Rows)
	if t.New {
		name += ", the new table of an adoption"
	}
	if t.Bytes > 0 {
		spans += fmt.Sprintf(", %.1f MiB", float64(t.Bytes)/(1<<20))
	}
	if t.Future > 0 {
		spans += fmt.Sprintf("; %d of them begin in the future", t.Future)
	}
	if t.Sampled > 0 {
		ordered = fmt.Sprintf("%.1f %% of %d spans of the newest partition", 100*t.Ordered,
			t.Sampled)
	}
	if !t.Expires.IsZero() {
		expires = fmt.Sprintf("in %.1f days (%s)", time.Until(t.Expires).Hours()/24,
			rfc3339(t.Expires))
	}
	fmt.Fprintf(out, `%s
  sorted by       %s
  engine          %s
  TTL             %s
  storage policy  %s
  spans           %s
  ordered IDs     %s
  last expires    %s
  read by         %s
`, name, cmp.Or(t.SortingKey, "nothing"), t.Engine,
		cmp.Or(t.TTL, "none"), cmp.Or(t.StoragePolicy, "none"), spans,
		ordered, expires, cmp.Or(strings.Join(t.Views, ", "), "no views"))
}

// run runs a plan and prints each step, or prints the plan.
func (s *spansServer) run(cmd *cobra.Command, db *sql.DB, p clickhouse.Plan) error {
	out := cmd.OutOrStdout()
	if s.dryRun {
		_, err := fmt.Fprint(out, p.Script())
		return err
	}
	if len(p.Steps) == 0 {
		fmt.Fprintln(out, "nothing is left to do")
	}
	err := p.Run(cmd.Context(), db, func(step clickhouse.Step) {
		fmt.Fprintln(out, step.Does)
		for _, undo := range step.Undo {
			fmt.Fprintln(out, "  to undo this:", strings.ReplaceAll(undo, "\n", " "))
		}
		_ = flush(cmd) // its error is returned again at the end
	})
	for _, note := range p.Notes {
		if err == nil {
			fmt.Fprintln(out, "note:", note)
		}
	}
	return err
}

func (s *spansServer) address() string { return cmp.Or(s.dsn, os.Getenv(clickhouseVar)) }

// with opens a connection for one call.
func (s *spansServer) with(call func(*sql.DB) error) error {
	if s.address() == "" {
		return errors.New("clickhouse: no address: set --dsn or $" + clickhouseVar)
	}
	options, err := chgo.ParseDSN(s.address())
	scheme, _, _ := strings.Cut(s.address(), "://")
	if err != nil || !slices.Contains([]string{"clickhouse", "tcp", "http", "https"},
		scheme) { // its text may contain the password
		return errors.New("clickhouse: the address is invalid: want " +
			"clickhouse://user:password@host:9000/database or " +
			"http://user:password@host:8123/database")
	}
	for i, host := range options.Addr {
		options.Addr[i] = withPort(host, options)
	}
	db := chgo.OpenDB(options)
	defer func() { _ = db.Close() }()
	err = call(db)
	var refused *chgo.Exception
	const notEnoughPrivileges = 497
	if errors.As(err, &refused) && refused.Code == notEnoughPrivileges {
		return fmt.Errorf("%w\ngrant this to the user and run the same command again; it "+
			"continues where it stopped", err)
	}
	return err
}

// withPort adds the default port to a host that has none.
func withPort(host string, o *chgo.Options) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	plain, tls := "9000", "9440"
	if o.Protocol == chgo.HTTP {
		plain, tls = "8123", "8443"
	}
	if o.TLS != nil {
		plain = tls
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), plain)
}
