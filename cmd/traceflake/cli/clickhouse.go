package cli

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/internal/redact"
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

func (s *spansServer) address() string { return cmp.Or(s.dsn, os.Getenv(clickhouseVar)) }

var errAddress = errors.New("clickhouse: the address is invalid: want " +
	"clickhouse://user:password@host:9000/database or http://user:password@host:8123/database")

// with connects to the server for one call. It waits for the connection until ctx ends.
func (s *spansServer) with(ctx context.Context, call func(*sql.DB) error) (err error) {
	defer func() { err = redact.Of(s.address()).Error(err) }()
	if s.address() == "" {
		return errors.New("clickhouse: no address: set --dsn or $" + clickhouseVar)
	}
	scheme, _, _ := strings.Cut(s.address(), "://")
	if !slices.Contains([]string{"clickhouse", "tcp", "http", "https"}, scheme) {
		return errAddress // the text may be a password
	}
	options, err := chgo.ParseDSN(s.address())
	if err != nil {
		return fmt.Errorf("%w; %w", errAddress, err)
	}
	for i, host := range options.Addr {
		options.Addr[i] = withPort(host, options)
	}
	db := chgo.OpenDB(options)
	defer func() { _ = db.Close() }()
	if _, err := await(ctx, func(ctx context.Context) (none struct{}, err error) {
		return none, db.PingContext(ctx)
	}); err != nil {
		return fmt.Errorf("clickhouse: connect: %w", err)
	}
	return call(db)
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
