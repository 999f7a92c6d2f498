package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// Result is a statement's result and ClickHouse's own counts of its cost.
type Result struct {
	Rows      [][]string // as text; NULL is "ᴺᵁᴸᴸ"
	RowsRead  uint64     // from tables, not in the result
	BytesRead uint64     // uncompressed
}

// Query runs one statement without a FORMAT clause and holds the whole result.
// Use clickhouse-go with DSN for typed values and parameters.
func (e *Engine) Query(ctx context.Context, sql string) (Result, error) {
	body, err := post(ctx, &e.dsn, sql)
	if err != nil || len(body) == 0 {
		return Result{}, err
	}
	var table struct {
		Data       [][]string
		Statistics struct {
			RowsRead  uint64 `json:"rows_read"`
			BytesRead uint64 `json:"bytes_read"`
		}
	}
	if err := json.Unmarshal(body, &table); err != nil {
		return Result{}, fmt.Errorf("servers: read ClickHouse's response: %w", err)
	}
	return Result{table.Data, table.Statistics.RowsRead, table.Statistics.BytesRead}, nil
}

// Rows runs a statement for a test, which fails if the statement does, and returns its rows.
func (e *Engine) Rows(tb testing.TB, statement string) [][]string {
	tb.Helper()
	r, err := e.Query(tb.Context(), statement)
	if err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
	return r.Rows
}

// Run runs the statements that a function returned.
func (e *Engine) Run(tb testing.TB, statements []string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	for _, statement := range statements {
		e.Rows(tb, statement)
	}
}

// post runs one statement over HTTP. The answer is in the format
// JSONCompactStrings, or empty if the statement has no result.
func post(ctx context.Context, dsn *url.URL, sql string) ([]byte, error) {
	at := url.URL{Scheme: dsn.Scheme, Host: dsn.Host, Path: "/"}
	in := url.Values{
		"default_format":    {"JSONCompactStrings"},
		"wait_end_of_query": {"1"}, // so that a late error has its status
	}
	if database := strings.TrimPrefix(dsn.Path, "/"); database != "" {
		in.Set("database", database)
	}
	at.RawQuery = in.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), strings.NewReader(sql))
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	if password, ok := dsn.User.Password(); ok || dsn.User.Username() != "" {
		r.SetBasicAuth(dsn.User.Username(), password)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("servers: ClickHouse at %s: %w", dsn.Host, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("servers: ClickHouse at %s: %w", dsn.Host, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("servers: ClickHouse at %s: %s", dsn.Host, bytes.TrimSpace(body))
	}
	return body, nil
}

// Reads is what ClickHouse counted in system.events while a statement ran. Any
// concurrent statement counts, too.
type Reads struct {
	Rows  uint64 // taken from tables
	Bytes uint64 // of these rows, uncompressed
	Disk  uint64 // bytes read from files, compressed: columns, marks and indexes
}

const readEvents = `SELECT sumIf(value, event = 'SelectedRows'), sumIf(value, event = 'SelectedBytes'),
	sumIf(value, event = 'ReadBufferFromFileDescriptorReadBytes') FROM system.events`

// Reads runs one statement without a FORMAT clause, holds its result and counts
// what it read with ClickHouse's caches empty. The cost of reading the counts is subtracted.
func (e *Engine) Reads(ctx context.Context, statement string) (Result, Reads, error) {
	for _, cache := range []string{"MARK", "UNCOMPRESSED", "INDEX MARK", "INDEX UNCOMPRESSED", "QUERY CONDITION"} {
		if _, err := e.Query(ctx, "SYSTEM DROP "+cache+" CACHE"); err != nil {
			return Result{}, Reads{}, err
		}
	}
	before, err1 := e.events(ctx)
	again, err2 := e.events(ctx)
	result, err3 := e.Query(ctx, statement)
	after, err4 := e.events(ctx)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return Result{}, Reads{}, err
	}
	for i := range after {
		all, own := after[i]-again[i], again[i]-before[i]
		after[i] = all - min(own, all)
	}
	return result, Reads{after[0], after[1], after[2]}, nil
}

func (e *Engine) events(ctx context.Context) (n [3]uint64, err error) {
	r, err := e.Query(ctx, readEvents)
	for i := range n {
		if err == nil {
			n[i], err = strconv.ParseUint(r.Rows[0][i], 10, 64)
		}
	}
	return n, err
}
