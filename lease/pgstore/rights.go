package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/lease"
)

// rightsSQL queries the privileges of a process. A missing table does not count as a missing
// privilege.
const rightsSQL = `SELECT has_schema_privilege(n.oid, 'USAGE') AS "USAGE on the schema",
	coalesce(has_table_privilege(t.oid, 'SELECT'), true) AS "SELECT on traceflake_store",
	coalesce(has_any_column_privilege(t.oid, 'UPDATE'), true) AS "UPDATE on traceflake_store",
	NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'
		AS "a primary that is not read-only"
	FROM pg_namespace AS n
	LEFT JOIN pg_class AS t ON t.relnamespace = n.oid AND t.relname = 'traceflake_store'
	WHERE nspname = $1`

// CheckRights queries them; see [driver.Objects].
func (o *objects) CheckRights(ctx context.Context) error {
	missing, err := session(ctx, o, func(c *pgx.Conn) (missing []error, err error) {
		rows, err := c.Query(ctx, rightsSQL, o.schema)
		if err != nil {
			return nil, err
		}
		all, err := pgx.CollectRows(rows, pgx.RowToMap)
		if err == nil && len(all) == 0 {
			missing = append(missing, fmt.Errorf("there is no schema %s", o.schema))
		}
		for _, schema := range all {
			for _, field := range rows.FieldDescriptions() {
				if schema[field.Name] != true {
					missing = append(missing, errors.New("missing: "+field.Name))
				}
			}
		}
		return missing, err
	})
	if err != nil {
		return explain(ctx, err)
	}
	if len(missing) > 0 {
		return &lease.Error{
			Err: fmt.Errorf("%w: %w", lease.ErrMisconfigured, errors.Join(missing...)),
			Fix: "grant what is missing, or correct the URL: the schema is its search_path",
		}
	}
	return nil
}
