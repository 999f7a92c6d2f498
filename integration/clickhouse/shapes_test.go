package clickhouse_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/clickhouse/migrate"
)

// What tables of the world have besides the exporter's columns, and their indexes.
var shapes = map[string]struct{ columns, indexes, keys string }{
	// The exporter's main branch of August 2026, with full text search.
	"exporter, text indexes": {
		`, ResourceAttributeItems Array(String) ALIAS arrayMap(kv -> concat(kv.1, '=', kv.2), CAST(ResourceAttributes, 'Array(Tuple(String, String))')),
		SpanAttributeItems Array(String) ALIAS arrayMap(kv -> concat(kv.1, '=', kv.2), CAST(SpanAttributes, 'Array(Tuple(String, String))'))`,
		`INDEX idx_trace_id TraceId TYPE text(tokenizer = 'array'),
		INDEX idx_res_attr_key mapKeys(ResourceAttributes) TYPE text(tokenizer = 'array'),
		INDEX idx_res_attr_items ResourceAttributeItems TYPE text(tokenizer = 'array'),
		INDEX idx_span_attr_key mapKeys(SpanAttributes) TYPE text(tokenizer = 'array'),
		INDEX idx_span_attr_items SpanAttributeItems TYPE text(tokenizer = 'array'),
		INDEX idx_duration Duration TYPE minmax GRANULARITY 1,
		INDEX idx_lower_span_name lower(SpanName) TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8`,
		"PARTITION BY toDate(Timestamp) PRIMARY KEY (ServiceName, SpanName, toDateTime(Timestamp)) ORDER BY (ServiceName, SpanName, toDateTime(Timestamp), Timestamp)",
	},
	// ClickStack's, August 2026.
	"ClickStack": {
		`, "__hdx_materialized_rum.sessionId" String MATERIALIZED ResourceAttributes['rum.sessionId'] CODEC(ZSTD(1)),
		SampleRate UInt64 MATERIALIZED greatest(toUInt64OrZero(SpanAttributes['SampleRate']), 1) CODEC(T64, ZSTD(1)),
		ResourceAttributeItems Array(String) ALIAS arrayMap(arr -> concat(arr.1, '=', arr.2), ResourceAttributes::Array(Tuple(String, String)))`,
		`INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1,
		INDEX idx_rum_session_id "__hdx_materialized_rum.sessionId" TYPE bloom_filter(0.001) GRANULARITY 1,
		INDEX idx_res_attr_items ResourceAttributeItems TYPE text(tokenizer = 'array'),
		INDEX idx_lower_span_name lower(SpanName) TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8`,
		"PARTITION BY toDate(Timestamp) ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))",
	},
	"somebody's own columns": {
		`, Tenant LowCardinality(String) DEFAULT 'nobody', "odd ''name" Nullable(UInt8) COMMENT 'x'`,
		`INDEX tenants Tenant TYPE set(100) GRANULARITY 4`,
		"PARTITION BY toYear(Timestamp) ORDER BY (ServiceName, Timestamp)",
	},
	// One partition of more days than an insert may have: see faulty.
	"no partitions, no order": {"", "INDEX idx_duration Duration TYPE minmax", "ORDER BY tuple()"},
}

func (e *engine) shaped(table, shape string) {
	e.t.Helper()
	create, _, _ := strings.Cut(collectorTable(table)[0], ",\n    INDEX")
	s := shapes[shape]
	e.exec(create + s.columns + ", " + s.indexes + ") ENGINE = MergeTree " + s.keys)
}

// TestMigrateKeepsTheLookupTable: it has the times of all traces, before the migration and after.
func TestMigrateKeepsTheLookupTable(t *testing.T) {
	e := newEngine(t)
	e.template(few())
	s := e.exporterTable("spans")
	s.KeepLookup = true
	e.migrates(s)
	e.holds("spans", ids(few()))
	e.insert("spans", world()[1000:1010])
	const times = "SELECT TraceId || ' ' || toString(toDateTime(min(%s))) || ' ' || toString(toDateTime(max(%s))) AS row FROM %s GROUP BY TraceId ORDER BY row"
	want := e.column(fmt.Sprintf(times, "Timestamp", "Timestamp", "spans"))
	if got := e.column(fmt.Sprintf(times, "Start", "End", "spans_trace_id_ts")); !slices.Equal(got, want) || len(want) < 20 {
		t.Errorf("the lookup table has %d traces, want %d, or other times", len(got), len(want))
	}
	e.creates(s)
}

// TestMigrateOtherShapes: columns and indexes that the exporter of v0.161.0 does
// not have come along, whatever their kind, with their values, also after an
// interruption. Exactly what the dry run shows is run.
func TestMigrateOtherShapes(t *testing.T) {
	e := newEngine(t)
	e.template(few())
	for shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			e := &engine{e.Engine, t, e.db}
			defer e.empty("template")
			e.shaped("spans", shape)
			e.exec("INSERT INTO spans (" + strings.Join(e.quoted("template"), ", ") + ") SELECT * FROM template")
			switch shape {
			case "ClickStack": // a stored value that today's expression would not give
				e.exec("INSERT INTO spans (Timestamp, TraceId, SpanId, SampleRate) SETTINGS insert_allow_materialized_columns = 1 VALUES ('2026-10-15 01:00:00', 'x', 'y', 77)")
			case "somebody's own columns":
				e.exec("INSERT INTO spans (Timestamp, TraceId, SpanId, Tenant, `odd ''name`) VALUES ('2026-10-15 01:00:00', 'x', 'y', 'acme', 5)")
			}
			// A view fed by the table keeps working, as ClickStack's rollups do.
			e.exec("CREATE TABLE rollup (ServiceName String, n UInt64) ENGINE = SummingMergeTree ORDER BY ServiceName")
			e.exec("CREATE MATERIALIZED VIEW rollup_mv TO rollup AS SELECT ServiceName, count() AS n FROM spans GROUP BY ServiceName")

			all := "SELECT toString(tuple(" + strings.Join(e.quoted("spans"), ", ") + ")) AS row FROM spans ORDER BY row"
			const columnsOf = "SELECT name || ' ' || type || ' ' || default_kind || ' ' || default_expression FROM system.columns WHERE database = currentDatabase() AND table = 'spans' ORDER BY name"
			rows, columns := e.column(all), e.column(columnsOf)
			s := clickhouse.Schema{Table: "spans"}
			shown, err := migrate.Statements(t.Context(), e.db, s)
			if err != nil {
				t.Fatal(err)
			}
			var once, ran []string // without repetitions
			for _, query := range shown {
				if !slices.Contains(once, query) {
					once = append(once, query)
				}
			}
			broke := false
			breaks := e.faulty(&faulty{
				fail: func(query string) bool {
					copies := strings.HasPrefix(query, "INSERT") && !broke
					broke = broke || copies
					return copies
				},
				rewrite: func(query string) string {
					resumed := strings.Contains(query, "TACH TABLE `spans_old`") // waits for what the first run may have begun
					if !strings.HasPrefix(query, "SELECT") && !strings.Contains(query, " MODIFY COMMENT ") && !resumed && !slices.Contains(ran, query) {
						ran = append(ran, query)
					}
					return query
				},
			})
			if err := migrate.Run(t.Context(), breaks, s, nil); !errors.Is(err, errFaulty) {
				t.Fatal(err)
			}
			if err := migrate.Run(t.Context(), breaks, s, nil); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(ran, once) {
				t.Errorf("shown\n%s\nran\n%s", strings.Join(once, "\n"), strings.Join(ran, "\n"))
			}
			if after := e.column(all); !slices.Equal(after, rows) {
				t.Errorf("%d rows of %d, or others", len(after), len(rows))
			}
			if after := e.column(columnsOf); !slices.Equal(after, columns) {
				t.Errorf("columns %q, want %q", after, columns)
			}
			const indexes = "SELECT name FROM system.data_skipping_indices WHERE database = currentDatabase() AND table = "
			if lost := e.column(indexes + "'spans_old' AND name NOT IN (" + indexes + "'spans')"); lost != nil {
				t.Errorf("the indexes %q are lost", lost)
			}
			e.insert("spans", world()[1000:1010])
			e.is("10", "SELECT sum(n) FROM rollup") // new spans
			e.creates(s)
		})
	}
}

// quoted returns the names of a table's columns.
func (e *engine) quoted(table string) []string {
	e.t.Helper()
	return e.column("SELECT '`' || name || '`' FROM system.columns WHERE database = currentDatabase() AND table = '" + table + "' ORDER BY position")
}
