package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

// blocksPerPage counts the blocks of a new store that share a row: few processes write the same
// row.
const blocksPerPage = 64

func init() {
	stores.Register("postgres", openURL)
	stores.Register("postgresql", openURL)
}

// openURL opens the store at postgres://user:password@host:port/database.
func openURL(dsn string) (stores.Store, error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, fmt.Errorf("pgstore: %w", err)
	}
	// The password file, the service file and the certificates may have changed since.
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		now, err := parse(dsn)
		if err == nil {
			prepare(now.ConnConfig)
			*c = *now.ConnConfig
		}
		return err
	}
	return New(config)
}

// parse returns the configuration of a URL, with what libpq's variables and files add to it.
func parse(dsn string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		// The error contains the URL and, if its parts are unclear, the password.
		_, why, ok := strings.Cut(err.Error(), "`: ")
		if !ok || strings.Contains(why, "failed to parse as URL") {
			return nil, errors.New(urlForm)
		}
		err = errors.New(why)
		return nil, &lease.Error{Err: err, Fix: cmp.Or(
			lease.Fix(answers.Explain("", err)), "correct the parameter in the URL, or the "+
				"variable or service file of libpq that sets it")}
	}
	if strings.Contains(config.ConnConfig.Host, "@") { // of the password
		return nil, errors.New(urlForm)
	}
	return config, nil
}

const urlForm = "want postgres://user:password@host:port/database, with special characters of " +
	"the password as %XX"

// New returns a store with at most two connections of its own, which it closes after 30 s without a
// call. config comes from [pgxpool.ParseConfig], or from the program's own pool: pool.Config(). Its
// search_path is the schema of the tables, by default public. New does not connect. The store is
// safe for concurrent use. Errors of invalid arguments wrap [lease.ErrInvalidRequest].
//
// The store needs connections of its own to see the server's warnings: the server reports a commit
// that was not replicated only as a warning.
func New(config *pgxpool.Config) (stores.Store, error) {
	if config == nil {
		return nil, driver.Invalid("pgstore: no configuration")
	}
	o, err := newObjects(config)
	if err != nil {
		return nil, err
	}
	return stores.New(o, driver.Layout{Name: "pgstore", BlocksPerPage: blocksPerPage})
}

func newObjects(config *pgxpool.Config) (*objects, error) {
	config = config.Copy()
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, 2
	config.MaxConnIdleTime, config.HealthCheckPeriod = 30*time.Second, 30*time.Second
	path := config.ConnConfig.RuntimeParams["search_path"]
	schema := cmp.Or(strings.Trim(path, ` "`), "public")
	prepare(config.ConnConfig)
	if strings.Contains(schema, ",") {
		return nil, driver.Invalid("pgstore: search_path is %s, want the one schema of the tables",
			schema)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	return &objects{pool: pool, schema: schema}, err
}
