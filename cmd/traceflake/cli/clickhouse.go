package cli

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed" // the answers
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/internal/await"
	"github.com/traceflake/traceflake/internal/mistakes"
	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// clickhouseVar is the variable with the address of ClickHouse, which may contain a password.
const clickhouseVar = "TRACEFLAKE_CLICKHOUSE_DSN"

func clickhouseCommand() *cobra.Command {
	var s spansServer
	changing := []*cobra.Command{clickhouseCreateCommand(&s), clickhouseAdoptCommand(&s),
		clickhouseCompareCommand(&s)}
	for _, cmd := range changing {
		cmd.PersistentFlags().BoolVar(&s.dryRun, "dry-run", false,
			"print the SQL and change nothing")
	}
	cmd := group(&cobra.Command{
		Use:   "clickhouse",
		Short: "Create the spans table in ClickHouse, or adopt one",
		Example: `  traceflake clickhouse create --dsn clickhouse://localhost:9000/otel
  traceflake clickhouse adopt prepare --dry-run`,
	}, append(changing, clickhouseStatusCommand(&s))...)
	s.addFlags(cmd.PersistentFlags())
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
	if fix := mistakes.Misread(s.address()); fix != "" {
		return withFix(fix, "clickhouse: the address is not the one that was meant")
	}
	options, err := parseDSN(s.address())
	scheme, _, _ := strings.Cut(s.address(), "://")
	if err == nil && !slices.Contains([]string{"clickhouse", "tcp", "http", "https"}, scheme) {
		err = errors.New("its scheme is unknown")
	}
	if err != nil {
		return withFix(cmp.Or(mistakes.Fix(s.address()), "correct "+clickhouseVar+
			": want clickhouse://user:password@host:9000/database, "+
			"https://user:password@host:8443/database or http://…"),
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

//go:embed answers.txt
var answersTable string

// answers has what ClickHouse answers.
var answers = driver.ParseAnswers(answersTable)

// code returns the code that answers have for an error.
func code(err error) string {
	if e, ok := errors.AsType[*chgo.Exception](err); ok {
		return strconv.Itoa(int(e.Code))
	}
	if e, ok := errors.AsType[*chgo.HTTPError](err); ok {
		return "http" + strconv.Itoa(e.StatusCode)
	}
	return "connect"
}

// diagnose adds what an operator can do to an error.
func diagnose(err error) error {
	if err == nil {
		return nil
	}
	if fix := answers.Find(code(err), err.Error()).Fix; fix != "" {
		return withFix(fix, "%w", err)
	}
	return driver.Diagnose(err)
}

// unconnected returns the error for a server to which no connection is possible. If something
// listens that does not answer as ClickHouse, it is another kind of server, or its other port.
func unconnected(err error) error {
	err = fmt.Errorf("clickhouse: connect: %w", cause(err))
	_, answered := errors.AsType[*chgo.Exception](err)
	_, dialed := errors.AsType[*net.OpError](err)
	fix := lease.Fix(diagnose(err))
	other := fix == "" || fix == driver.CommonFix("OTHER_SERVER") ||
		errors.Is(err, context.DeadlineExceeded)
	if !answered && !dialed && other {
		return withFix("start the server, or correct the address: another kind of server may "+
			"listen there; ports are 9000 for clickhouse://, 8123 for http://, with TLS 9440 and "+
			"8443", "%w", err)
	}
	return err
}

// cause returns the error of a connection without what the driver writes before it: what it was
// about to ask for, twice, and the request's URL. Of a page it has the beginning.
func cause(err error) error {
	const most = 200
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	e, ok := errors.AsType[*chgo.HTTPError](err)
	switch {
	case !ok:
		return err
	case len(e.Error()) > most && code(err) == "http"+strconv.Itoa(e.StatusCode):
		text := fmt.Sprintf("%.*s…", most, e.Err)
		return &chgo.HTTPError{StatusCode: e.StatusCode, Err: errors.New(text)}
	}
	return e
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
