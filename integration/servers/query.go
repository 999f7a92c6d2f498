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
	Rows [][]string `json:"data"` // as text; NULL is "ᴺᵁᴸᴸ"
	Read Reads      `json:"statistics"`
}

// Reads holds how much a statement read.
type Reads struct {
	Rows  uint64 `json:"rows_read"`  // taken from tables
	Bytes uint64 `json:"bytes_read"` // of these rows, uncompressed
	// bytes from files, compressed: columns, marks and indexes; counted only by [Engine.Reads]
	Disk uint64
}

// Query runs one statement without a FORMAT clause and holds the whole result.
// Use clickhouse-go with DSN for typed values and parameters.
func (e *Engine) Query(ctx context.Context, sql string) (r Result, err error) {
	body, err := post(ctx, e.DSN(), sql)
	if err != nil || len(body) == 0 {
		return r, err
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("servers: read ClickHouse's response: %w", err)
	}
	return r, nil
}

// Exec runs statements in turn, up to the first that fails.
func (e *Engine) Exec(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := e.Query(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
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
	if err == nil {
		err = e.Exec(tb.Context(), statements...)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// post runs one statement over HTTP. The answer is in the format
// JSONCompactStrings, or empty if the statement has no result.
func post(ctx context.Context, dsn, sql string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, dsn, strings.NewReader(sql))
	if err != nil {
		return nil, err
	}
	in := url.Values{
		"default_format":    {"JSONCompactStrings"},
		"wait_end_of_query": {"1"}, // so that a late error has its status
	}
	if database := strings.TrimPrefix(r.URL.Path, "/"); database != "" {
		in.Set("database", database)
	}
	r.URL.Path, r.URL.RawQuery = "/", in.Encode()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("ClickHouse at %s: %s", r.URL.Host, bytes.TrimSpace(body))
	}
	return body, err
}

// Reads runs a statement as [Engine.Query] does, with ClickHouse's caches empty, and counts the
// bytes from files, too: also those of any concurrent statement.
func (e *Engine) Reads(ctx context.Context, statement string) (Result, error) {
	for _, cache := range []string{"MARK", "UNCOMPRESSED", "INDEX MARK", "INDEX UNCOMPRESSED",
		"QUERY CONDITION"} {
		if _, err := e.Query(ctx, "SYSTEM DROP "+cache+" CACHE"); err != nil {
			return Result{}, err
		}
	}
	before, err1 := e.fileBytes(ctx)
	result, err2 := e.Query(ctx, statement)
	after, err3 := e.fileBytes(ctx)
	result.Read.Disk = after - before
	return result, errors.Join(err1, err2, err3)
}

// fileBytes returns how many bytes ClickHouse has read from files.
func (e *Engine) fileBytes(ctx context.Context) (n uint64, err error) {
	r, err := e.Query(ctx, "SELECT sum(value) FROM system.events WHERE event = "+
		"'ReadBufferFromFileDescriptorReadBytes'")
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(r.Rows[0][0], 10, 64)
}
