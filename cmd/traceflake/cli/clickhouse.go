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
	"github.com/traceflake/traceflake/internal/await"
	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
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
	}, clickhouseCreateCommand(&s), clickhouseAdoptCommand(&s), clickhouseCompareCommand(&s),
		clickhouseStatusCommand(&s))
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
	flags.StringVar(&s.dsn, "dsn", "", "clickhouse://user:password@host:9000/database, "+
		"https://…:8443/database, http://…:8123/database; with TLS also "+
		"clickhouse://…:9440/database?secure=true; read_timeout=1h lets statements run longer "+
		"than 5m (default $"+clickhouseVar+")")
	flags.StringVar(&s.schema.Database, "database", "", "database (default the connection's)")
	flags.StringVar(&s.schema.Table, "table", "", "table (default otel_traces)")
	flags.StringVar(&s.schema.Cluster, "cluster", "", "cluster (default one server)")
}

func (s *spansServer) address() string {
	return strings.TrimSpace(cmp.Or(s.dsn, os.Getenv(clickhouseVar)))
}

// with connects to the server for one call. It waits for the connection until ctx ends.
func (s *spansServer) with(ctx context.Context, call func(*sql.DB) error) (err error) {
	defer func() { err = redact.Of(s.address()).Error(diagnose(err)) }()
	if s.address() == "" {
		return errors.New("clickhouse: no address: set --dsn or $" + clickhouseVar)
	}
	options, err := parseDSN(s.address())
	scheme, _, _ := strings.Cut(s.address(), "://")
	if err == nil && !slices.Contains([]string{"clickhouse", "tcp", "http", "https"}, scheme) {
		err = errors.New("its scheme is unknown")
	}
	if err != nil {
		return wrong("correct "+clickhouseVar+": want clickhouse://user:password@host:9000/"+
			"database, https://user:password@host:8443/database or http://…, without quotes",
			"clickhouse: the address %s is invalid: %w", redact.Address(s.address()), err)
	}
	for i, host := range options.Addr {
		options.Addr[i] = withPort(host, options)
	}
	db := chgo.OpenDB(options)
	defer func() { _ = db.Close() }()
	if _, err := await.Call(ctx, grace, func(ctx context.Context) (none struct{}, err error) {
		return none, db.PingContext(ctx)
	}); err != nil {
		return unconnected(err)
	}
	return call(db)
}

// parseDSN returns the options of an address. The driver wants secure=true besides https.
func parseDSN(address string) (*chgo.Options, error) {
	if strings.HasPrefix(address, "https://") {
		separator := "?"
		if strings.Contains(address, "?") {
			separator = "&"
		}
		address += separator + "secure=true"
	}
	return chgo.ParseDSN(address)
}

// fixes maps ClickHouse's codes of errors to what an operator can do.
var fixes = map[int32]string{
	516: "correct user and password in the address",
	497: "grant the user the missing rights, and run the same command again: it continues where " +
		"it stopped",
	81:  "create the database, or correct it in the address",
	47:  "correct --table: the table lacks a column of the exporter's",
	60:  "traceflake clickhouse create; or correct the database in the address",
	159: overloaded, 160: overloaded, 241: overloaded,
}

const overloaded = "try again: the server is overloaded"

// code returns the code of an error of ClickHouse, or 0.
func code(err error) int32 {
	if e, ok := errors.AsType[*chgo.Exception](err); ok {
		return e.Code
	}
	return 0
}

// diagnose adds what an operator can do to an error.
func diagnose(err error) error {
	if fix := fixes[code(err)]; fix != "" {
		return wrong(fix, "%w", err)
	}
	return driver.Diagnose(err)
}

// unconnected returns the error for a server to which no connection is possible. Without a code of
// the server, without TLS, and if something listens, it is another kind of server, or its other
// port.
func unconnected(err error) error {
	err = fmt.Errorf("clickhouse: connect: %w", err)
	_, dialed := errors.AsType[*net.OpError](err)
	fix := lease.Fix(driver.Diagnose(err))
	other := fix == "" || fix == driver.CommonFix("OTHER_SERVER") ||
		errors.Is(err, context.DeadlineExceeded)
	if code(err) == 0 && !dialed && other {
		return wrong("start the server, or correct the address: another kind of server may listen "+
			"there; ports are 9000 for clickhouse://, 8123 for http://, with TLS 9440 and 8443",
			"%w", err)
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
