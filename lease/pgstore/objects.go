package pgstore

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease/driver"
)

// objects is a [driver.Objects] in one table of a PostgreSQL database.
type objects struct {
	pool   *pgxpool.Pool
	schema string // of the table
}

// row is an object that a statement read or wrote.
type row struct {
	Name, Version string
	Data          string // in hex digits
	Now           int64
	Place         string
	Durable       string
}

func (r row) object() (driver.Object, error) {
	data, err := hex.DecodeString(r.Data)
	return driver.Object{Data: data, Version: r.Version, Time: time.Unix(r.Now, 0).UTC(),
		Place: r.Place}, err
}

// Read implements [driver.Objects]. It needs the primary: it waits for what it reads to be durable.
func (o *objects) Read(ctx context.Context, name string) (driver.Object, error) {
	rows, err := o.query(ctx, readSQL, name)
	if code(err) == noTable {
		return driver.Object{}, nil
	}
	if err != nil || len(rows) == 0 {
		return driver.Object{}, explain(ctx, err)
	}
	return rows[0].object()
}

// Write implements [driver.Objects]. It runs one statement. If it creates an object, it creates the
// table, too, which only the creation of a store does.
func (o *objects) Write(ctx context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	sql, args := replaceSQL, []any{name, version, data}
	if version == "" {
		sql, args = insertSQL, []any{name, data}
	}
	rows, err := o.query(ctx, sql, args...)
	if code(err) == noTable && version == "" {
		_, err = o.query(ctx, createSQL, pgx.QueryExecModeSimpleProtocol) // several statements
		if err == nil {
			rows, err = o.query(ctx, sql, args...)
		}
	}
	switch {
	case code(err) == noTable, undone(err):
		return driver.Object{}, driver.ErrChanged
	case err != nil:
		return driver.Object{}, explain(ctx, err)
	case len(rows) > 0:
		return rows[0].object()
	}
	return driver.Object{}, driver.ErrChanged
}

// List implements [driver.Objects]. It runs one statement, which returns the data, too.
func (o *objects) List(ctx context.Context) (map[string]driver.Object, error) {
	rows, err := o.query(ctx, listSQL)
	if err != nil && code(err) != noTable {
		return nil, explain(ctx, err)
	}
	all := make(map[string]driver.Object, len(rows))
	for _, r := range rows {
		if all[r.Name], err = r.object(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// CheckRights writes nothing; see [driver.Objects]. A read locks the row, which needs the right to
// write, and a server that is not read-only.
func (o *objects) CheckRights(ctx context.Context) error {
	_, err := o.Read(ctx, "config")
	return err
}

// Close closes the connections. Those to a server that does not respond are closed within 15 s.
func (o *objects) Close() error {
	o.pool.Close()
	return nil
}
