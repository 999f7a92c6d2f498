// A program that uses package clickhouse/migrate with an unreachable server.
package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/clickhouse/migrate"
)

type away struct{}

var errAway = errors.New("the server is unreachable")

func (away) Connect(context.Context) (driver.Conn, error) { return nil, errAway }
func (away) Driver() driver.Driver                        { return nil }

func main() {
	_, err := migrate.Statements(context.Background(), sql.OpenDB(away{}), clickhouse.Schema{})
	if !errors.Is(err, errAway) {
		panic(err)
	}
	fmt.Println("migrate:", err)
}
