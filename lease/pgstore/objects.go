package pgstore

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// objects is a [driver.Objects] in one table of a PostgreSQL database.
type objects struct {
	pool   *pgxpool.Pool
	schema string // of the table
}

// row is an object that a statement read or wrote, or has no name if there was none.
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

// Prepare implements [driver.Objects]. It creates the tables, unless they are there.
func (o *objects) Prepare(ctx context.Context) error {
	rows, err := o.query(ctx, readSQL, "config")
	switch {
	case code(err) == noTable: // or one was not restored
		_, err = o.query(ctx, createSQL, pgx.QueryExecModeSimpleProtocol) // several statements
	case err == nil && rows[0].Place == "":
		_, err = o.query(ctx, drawSQL)
	}
	if err == nil {
		rows, err = o.query(ctx, readSQL, "config")
	}
	if err == nil && rows[0].Place == "" {
		return errLogged
	}
	return explain(ctx, err)
}

// Read implements [driver.Objects]. It needs the primary: it waits for what it reads to be durable.
// After a crash of the server, and in a copy of it, the object has no place until Prepare.
func (o *objects) Read(ctx context.Context, name string) (driver.Object, error) {
	rows, err := o.query(ctx, readSQL, name)
	if code(err) == noTable {
		if !strings.Contains(err.Error(), "traceflake_place") {
			return driver.Object{}, nil
		}
		// A part of the store was restored.
		if err := o.Prepare(ctx); err != nil {
			return driver.Object{}, err
		}
		rows, err = o.query(ctx, readSQL, name)
	}
	if err != nil {
		return driver.Object{}, explain(ctx, err)
	}
	return rows[0].object()
}

// Write implements [driver.Objects]. It runs one statement.
func (o *objects) Write(ctx context.Context, name string, data []byte,
	version, place string) (driver.Object, error) {
	sql, args := insertSQL, []any{name, place, data}
	if version != "" {
		sql, args = replaceSQL, append(args, version)
	}
	rows, err := o.query(ctx, sql, args...)
	switch {
	case code(err) == noTable:
		return driver.Object{}, lease.ErrMoved
	case undone(err):
		return driver.Object{}, driver.ErrChanged
	case err != nil:
		return driver.Object{}, explain(ctx, err)
	case rows[0].Place != place || place == "":
		return driver.Object{}, lease.ErrMoved
	case rows[0].Name == "":
		return driver.Object{}, driver.ErrChanged
	}
	return rows[0].object()
}

// CheckRights writes nothing; see [driver.Objects]. A read locks the row, which needs the right to
// write, and a server that is not read-only.
func (o *objects) CheckRights(ctx context.Context) error {
	found, err := o.Read(ctx, "config")
	if err == nil && found.Version != "" {
		_, err = o.query(ctx, rightsSQL)
		err = explain(ctx, err)
	}
	return err
}

// Close closes the connections. Those to a server that does not respond are closed within 15 s.
func (o *objects) Close() error {
	o.pool.Close()
	return nil
}
