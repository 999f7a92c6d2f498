package postgres_test

import (
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // for database/sql
	"go.opentelemetry.io/otel/trace"
)

// The recipes for columns in package postgres's documentation: pgx takes and returns a [16]byte for
// uuid; database/sql takes text, and PostgreSQL returns it with dashes. Both have a slice for bytea.
func TestColumns(t *testing.T) {
	db := empty(t)
	db.exec(`CREATE TABLE requests (as_uuid uuid, as_bytea bytea, as_text text COLLATE "C")`)
	const digits, dashed = "16c6e867fa0000050123456789abcdef", "16c6e867-fa00-0005-0123-456789abcdef"
	id, err := trace.TraceIDFromHex(digits)
	if err != nil {
		t.Fatal(err)
	}
	const insert = "INSERT INTO requests VALUES ($1, $2, $3)"
	db.exec(insert, [16]byte(id), id[:], id.String())
	var asUUID [16]byte
	var asBytea []byte
	var asText string
	if err := db.conn.QueryRow(t.Context(), "DELETE FROM requests RETURNING *").Scan(&asUUID, &asBytea, &asText); err != nil {
		t.Fatal(err)
	}
	if asUUID != id || trace.TraceID(asBytea) != id || asText != digits {
		t.Errorf("pgx returns %x, %x, %s", asUUID, asBytea, asText)
	}

	plain, err := sql.Open("pgx", db.conn.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.ExecContext(t.Context(), insert, id.String(), id[:], id.String()); err != nil {
		t.Fatal(err)
	}
	var text string
	if err := plain.QueryRowContext(t.Context(), "SELECT * FROM requests").Scan(&text, &asBytea, &asText); err != nil {
		t.Fatal(err)
	}
	if text != dashed || trace.TraceID(asBytea) != id || asText != digits {
		t.Errorf("database/sql returns %s, %x, %s", text, asBytea, asText)
	}
}
