package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// place is a store that was found. A client uses the one that it found first, by its full name and
// with its ID as a condition of every write.
type place struct {
	lease.Description
	nodes  driver.NodeRange
	schema string
	now    time.Time // when it was read, by the server's clock
}

// schemas returns the schemas of a connection's search path, and takes it out of the settings that
// are sent: pgbouncer refuses it, and no statement relies on it.
func schemas(config *pgxpool.Config) []string {
	var names []string
	for name := range strings.SplitSeq(config.ConnConfig.RuntimeParams["search_path"], ",") {
		name = strings.TrimSpace(name)
		if quoted := strings.Trim(name, `"`); quoted != name {
			name = quoted
		} else {
			name = strings.ToLower(name)
		}
		if name == "$user" {
			name = config.ConnConfig.User
		}
		if name != "" {
			names = append(names, name)
		}
	}
	delete(config.ConnConfig.RuntimeParams, "search_path")
	return names
}

// find returns the schema of the store.
func (s *Store) find(ctx context.Context, db querier) (string, error) {
	type table struct {
		Schema   string
		Readable bool
	}
	tables, err := collect(ctx, db, pgx.RowToStructByPos[table], findSQL, s.name+suffix, append([]string{}, s.schemas...))
	if err != nil {
		return "", err
	}
	var readable, other []string
	for _, t := range tables {
		if t.Readable {
			readable = append(readable, t.Schema)
		} else {
			other = append(other, t.Schema)
		}
	}
	switch {
	case len(readable) == 1:
		return readable[0], nil
	case len(readable) > 1:
		return "", fmt.Errorf("%w: there are stores in the schemas %s: choose one with ?search_path=SCHEMA in the URL",
			lease.ErrMisconfigured, strings.Join(readable, ", "))
	case len(other) > 0:
		return "", fmt.Errorf("%w: the role has no right to read the store in the schema %s: %s",
			lease.ErrMisconfigured, strings.Join(other, ", "), rights)
	case len(s.schemas) > 0:
		return "", fmt.Errorf("%w, in the schema %s", lease.ErrNoStore, strings.Join(s.schemas, ", "))
	}
	return "", lease.ErrNoStore
}

// about is the row that describes a store, as JSON.
type about struct {
	ID         string    `json:"id"`
	Schema     int       `json:"schema"`
	Created    time.Time `json:"created"`
	First      uint32    `json:"first_node"`
	Nodes      uint32    `json:"nodes"`
	BlockSize  uint32    `json:"block_size"`
	LongestTTL int64     `json:"longest_ttl"` // seconds
	Raised     time.Time `json:"raised"`
	Secrets    []string  `json:"secrets"`
}

// read reads the description of the store in a schema. sql is aboutSQL, and what follows it.
func (s *Store) read(ctx context.Context, db querier, schema, sql string) (*place, error) {
	type described struct {
		Now  int64
		Text string
	}
	rows, err := collect(ctx, db, pgx.RowToStructByPos[described], s.statement(schema, sql))
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("%w: the table %s%s has %d rows, want one: restore it, or drop it and create a new store",
			lease.ErrSchemaVersion, s.name, suffix, len(rows))
	}
	var a about
	if err := json.Unmarshal([]byte(rows[0].Text), &a); err != nil || a.Schema != schemaVersion {
		return nil, fmt.Errorf("%w: the table %s%s has schema %d, this version of the library supports %d",
			lease.ErrSchemaVersion, s.name, suffix, a.Schema, schemaVersion)
	}
	d := lease.Description{
		ID: a.ID, Created: a.Created.UTC(), First: a.First, Nodes: a.Nodes, BlockSize: a.BlockSize,
		LongestTTL: time.Duration(a.LongestTTL) * time.Second, Raised: a.Raised.UTC(), Secrets: a.Secrets,
	}
	if err := driver.CheckDescription(d); err != nil {
		return nil, fmt.Errorf("%w: the table %s%s was edited: %w", lease.ErrSchemaVersion, s.name, suffix, err)
	}
	return &place{Description: d, nodes: driver.RangeOf(d), schema: schema, now: time.UnixMicro(rows[0].Now)}, nil
}

// locate finds and reads the description of the store.
func (s *Store) locate(ctx context.Context, db querier) (*place, error) {
	if p := s.used.Load(); p != nil {
		return s.read(ctx, db, p.schema, aboutSQL)
	}
	schema, err := s.find(ctx, db)
	if err != nil {
		return nil, err
	}
	return s.read(ctx, db, schema, aboutSQL)
}

// describe reads the description of the store, which must be the one in use if there is one.
func (s *Store) describe(ctx context.Context) (p *place, err error) {
	err = s.session(ctx, func(c *pgx.Conn) (err error) {
		p, err = s.locate(ctx, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.used.CompareAndSwap(nil, p)
	return p, s.used.Load().same(p.ID)
}

// same returns an error if another store is here.
func (p *place) same(id string) error {
	if id != p.ID {
		return fmt.Errorf("%w: it has the ID %q, and had %s", lease.ErrReplaced, id, p.ID)
	}
	return nil
}

// setup returns the store in use, of which the nodes and the longest TTL never change.
func (s *Store) setup(ctx context.Context) (*place, error) {
	if p := s.used.Load(); p != nil {
		return p, nil
	}
	return s.describe(ctx)
}

// Describe implements [lease.Store]. It is one statement, and one more to find the store.
func (s *Store) Describe(ctx context.Context) (lease.Description, error) {
	p, err := s.describe(ctx)
	if err != nil {
		return lease.Description{}, s.failed(ctx, "describe", err)
	}
	return p.Description, nil
}

// Create implements [lease.Admin]. It creates both tables, with all rows, in one transaction: in the
// schema of [WithTable] or of the search path in the URL, or in public. The role
// needs CREATE on the schema, and owns the tables.
func (s *Store) Create(ctx context.Context, d lease.Description) error {
	err := driver.CheckDescription(d)
	if err == nil {
		err = s.transaction(ctx, func(tx pgx.Tx) error { return s.create(ctx, tx, d) })
	}
	if err != nil {
		return s.failed(ctx, "create", err)
	}
	return nil
}

func (s *Store) create(ctx context.Context, tx pgx.Tx, d lease.Description) error {
	if _, err := tx.Exec(ctx, lockSQL); err != nil {
		return err
	}
	p, err := s.locate(ctx, tx)
	if err == nil && p.ID != d.ID {
		err = fmt.Errorf("%w, in the schema %s, with the ID %s, created at %s", lease.ErrExists, p.schema, p.ID, p.Created.Format(time.RFC3339))
	}
	if !errors.Is(err, lease.ErrNoStore) {
		return err
	}
	schema := "public"
	if len(s.schemas) > 0 {
		schema = s.schemas[0]
	}
	for _, sql := range createSQL {
		if _, err := tx.Exec(ctx, s.statement(schema, sql)); err != nil {
			return err
		}
	}
	first, last := d.First, d.First+d.Nodes-1
	if _, err := tx.Exec(ctx, s.statement(schema, blocksSQL), d.ID, first, last, d.BlockSize); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, s.statement(schema, describeSQL), d.ID, schemaVersion, d.Created.Unix(), d.First, d.Nodes, d.BlockSize,
		int64(d.LongestTTL/time.Second), append([]string{}, d.Secrets...))
	if err != nil || d.Raised.IsZero() {
		return err
	}
	return s.raise(ctx, tx, schema, d, driver.RaiseTo(lease.Description{}, d.Raised, d.Created)) // rounded up
}

// AddSecret implements [lease.Admin].
func (s *Store) AddSecret(ctx context.Context, fingerprint string) error {
	err := driver.CheckFingerprint(fingerprint)
	var p *place
	if err == nil {
		p, err = s.setup(ctx)
	}
	var written []string
	if err == nil {
		written, err = query(ctx, s, pgx.RowTo[string], s.statement(p.schema, addSecretSQL), p.ID, fingerprint)
	}
	if err == nil && len(written) == 0 {
		err = lease.ErrReplaced
	}
	if err != nil {
		return s.failed(ctx, "add a secret", err)
	}
	return nil
}

// List implements [lease.Admin]. It is two statements.
func (s *Store) List(ctx context.Context) ([]lease.Grant, error) {
	p, err := s.describe(ctx)
	var rows []row
	if err == nil {
		rows, err = query(ctx, s, p.scan, s.statement(p.schema, listSQL))
	}
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	blocks := make([]lease.Grant, len(rows))
	for i, r := range rows {
		blocks[i] = lease.Grant(r.block)
	}
	return blocks, nil
}

// Raise implements [lease.Admin]. It is one transaction.
func (s *Store) Raise(ctx context.Context, until time.Time) (time.Time, error) {
	err := driver.CheckRaise(until)
	var used *place
	if err == nil {
		used, err = s.setup(ctx)
	}
	if err == nil {
		err = s.transaction(ctx, func(tx pgx.Tx) error {
			p, err := s.read(ctx, tx, used.schema, aboutSQL+" FOR UPDATE")
			if err == nil {
				err = used.same(p.ID)
			}
			if err != nil {
				return err
			}
			until = driver.RaiseTo(p.Description, until, p.now)
			return s.raise(ctx, tx, p.schema, p.Description, until)
		})
	}
	if err != nil {
		return time.Time{}, s.failed(ctx, "raise", err)
	}
	return until, nil
}

func (s *Store) raise(ctx context.Context, tx pgx.Tx, schema string, d lease.Description, until time.Time) error {
	for _, sql := range []string{recordSQL, raiseSQL} {
		if _, err := tx.Exec(ctx, s.statement(schema, sql), d.ID, until.Unix()); err != nil {
			return err
		}
	}
	raised, err := collect(ctx, tx, pgx.RowTo[int], s.statement(schema, raisedSQL), d.ID, until.Unix())
	if err == nil && raised[0] != driver.RangeOf(d).Blocks() {
		err = fmt.Errorf("%d of %d blocks have a row; %w", raised[0], driver.RangeOf(d).Blocks(), errNotWritten)
	}
	return err
}

// Time implements [lease.Admin].
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	now, err := query(ctx, s, pgx.RowTo[int64], "SELECT "+nowSQL)
	if err != nil {
		return time.Time{}, s.failed(ctx, "time", err)
	}
	return time.UnixMicro(now[0]), nil
}
