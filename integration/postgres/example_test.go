package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // for database/sql
	"go.opentelemetry.io/otel/trace"
)

// These two run the column recipes of package postgres's documentation against a server.

const columns = `CREATE TEMPORARY TABLE requests (as_uuid uuid, as_bytea bytea, as_text text COLLATE "C")`

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// With pgx: a [16]byte for uuid, a slice for bytea, text for text.
func Example_pgx() {
	ctx := context.Background()
	conn := must(pgx.Connect(ctx, os.Getenv("TRACEFLAKE_POSTGRES_DSN")))
	defer func() { _ = conn.Close(ctx) }()
	must(conn.Exec(ctx, columns))

	id := must(trace.TraceIDFromHex("16c6e867fa0000050123456789abcdef"))
	must(conn.Exec(ctx, "INSERT INTO requests VALUES ($1, $2, $3)", [16]byte(id), id[:], id.String()))

	var asUUID [16]byte
	var asBytea []byte
	var asText string
	if err := conn.QueryRow(ctx, "SELECT * FROM requests").Scan(&asUUID, &asBytea, &asText); err != nil {
		panic(err)
	}
	fmt.Println(trace.TraceID(asUUID))
	fmt.Println(trace.TraceID(asBytea))
	fmt.Println(must(trace.TraceIDFromHex(asText)))
	// Output:
	// 16c6e867fa0000050123456789abcdef
	// 16c6e867fa0000050123456789abcdef
	// 16c6e867fa0000050123456789abcdef
}

// With database/sql: text for uuid, which PostgreSQL returns with dashes.
func Example_databaseSQL() {
	ctx := context.Background()
	db := must(sql.Open("pgx", os.Getenv("TRACEFLAKE_POSTGRES_DSN")))
	defer db.Close()
	conn := must(db.Conn(ctx)) // one connection, for the temporary table
	defer conn.Close()
	must(conn.ExecContext(ctx, columns))

	id := must(trace.TraceIDFromHex("16c6e867fa0000050123456789abcdef"))
	must(conn.ExecContext(ctx, "INSERT INTO requests VALUES ($1, $2, $3)", id.String(), id[:], id.String()))

	var asUUID, asText string
	var asBytea []byte
	if err := conn.QueryRowContext(ctx, "SELECT * FROM requests").Scan(&asUUID, &asBytea, &asText); err != nil {
		panic(err)
	}
	fmt.Println(asUUID)
	fmt.Println(must(trace.TraceIDFromHex(strings.ReplaceAll(asUUID, "-", ""))))
	fmt.Println(trace.TraceID(asBytea))
	fmt.Println(must(trace.TraceIDFromHex(asText)))
	// Output:
	// 16c6e867-fa00-0005-0123-456789abcdef
	// 16c6e867fa0000050123456789abcdef
	// 16c6e867fa0000050123456789abcdef
	// 16c6e867fa0000050123456789abcdef
}
