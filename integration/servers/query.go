package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Result is a statement's result and ClickHouse's own counts of its cost.
type Result struct {
	Columns   []string
	Rows      [][]string // as text; NULL is "ᴺᵁᴸᴸ"
	RowsRead  uint64     // from tables, not in the result
	BytesRead uint64     // uncompressed
	Elapsed   time.Duration
}

// Query runs one statement without a FORMAT clause and holds the whole result.
// Use clickhouse-go with DSN for typed values and parameters.
func (e *Engine) Query(ctx context.Context, sql string) (Result, error) {
	body, err := post(ctx, e.dsn, sql)
	if err != nil || len(body) == 0 {
		return Result{}, err
	}
	var table struct {
		Meta       []struct{ Name string }
		Data       [][]string
		Statistics struct {
			Elapsed   float64
			RowsRead  uint64 `json:"rows_read"`
			BytesRead uint64 `json:"bytes_read"`
		}
	}
	if err := json.Unmarshal(body, &table); err != nil {
		return Result{}, fmt.Errorf("servers: read ClickHouse's answer: %w", err)
	}
	r := Result{
		Rows:      table.Data,
		RowsRead:  table.Statistics.RowsRead,
		BytesRead: table.Statistics.BytesRead,
		Elapsed:   time.Duration(table.Statistics.Elapsed * float64(time.Second)),
	}
	for _, column := range table.Meta {
		r.Columns = append(r.Columns, column.Name)
	}
	return r, nil
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
