package ddl

import (
	_ "embed" // the SQL
	"fmt"
	"strings"
	"time"
)

var (
	//go:embed sql/columns.sql
	columns string
	//go:embed sql/lookup.sql
	lookupColumns string
)

// Columns are the columns that the Collector's exporter writes, with their types
// as in system.columns.
var Columns = [][2]string{
	{"Timestamp", "DateTime64(9)"},
	{"TraceId", "String"},
	{"SpanId", "String"},
	{"ParentSpanId", "String"},
	{"TraceState", "String"},
	{"SpanName", "LowCardinality(String)"},
	{"SpanKind", "LowCardinality(String)"},
	{"ServiceName", "LowCardinality(String)"},
	{"ResourceAttributes", "Map(LowCardinality(String), String)"},
	{"ScopeName", "String"},
	{"ScopeVersion", "String"},
	{"SpanAttributes", "Map(LowCardinality(String), String)"},
	{"Duration", "UInt64"},
	{"StatusCode", "LowCardinality(String)"},
	{"StatusMessage", "String"},
	{"Events.Timestamp", "Array(DateTime64(9))"},
	{"Events.Name", "Array(LowCardinality(String))"},
	{"Events.Attributes", "Array(Map(LowCardinality(String), String))"},
	{"Links.TraceId", "Array(String)"},
	{"Links.SpanId", "Array(String)"},
	{"Links.TraceState", "Array(String)"},
	{"Links.Attributes", "Array(Map(LowCardinality(String), String))"},
}

// ColumnNames is the list of the exporter's columns.
func ColumnNames() string {
	names := make([]string, len(Columns))
	for i, c := range Columns {
		names[i] = QuoteName(c[0])
	}
	return strings.Join(names, ", ")
}

// shard spreads traces evenly, keeps each on one shard, and is defined for any
// text. The high half would send all of a minute to one shard.
const shard = "reinterpretAsUInt64(reverse(unhex(substring(TraceId, 17, 16))))"

// SortingKey is that of the table, as system.tables shows it. Time comes first, in
// coarse steps, so that traces with random IDs stay among those of their time.
func (t Table) SortingKey() string {
	if t.TraceFirst {
		return "toStartOfHour(Timestamp), TraceId, Timestamp"
	}
	return "toStartOfInterval(Timestamp, toIntervalHour(4), 'UTC'), ServiceName, SpanName, TraceId, Timestamp"
}

// PartitionKey is that of the table, as system.tables shows it.
const PartitionKey = "toDate(Timestamp)"

// Carried is what a table takes over from the one whose place it takes.
type Carried struct {
	Engine   string   // with its arguments; "" is MergeTree, on a cluster ReplicatedMergeTree
	Elements []string // columns, indexes, constraints and projections besides the layout's own
	TTL      string   // expressions; "" is by Table.TTL
	Settings []string // each as in storage_policy = 'cold'
	Comment  string
}

// settings of the table that holds the rows.
const settings = "index_granularity = 512, min_compress_block_size = 16384, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)'"

// CreateRows returns the statement for the table that holds the rows, under the name with a suffix.
func (t Table) CreateRows(suffix string, c Carried) string {
	if c.Engine == "" {
		c.Engine = "MergeTree"
		if t.Cluster != "" {
			c.Engine = "ReplicatedMergeTree"
		}
	}
	if c.TTL == "" && t.TTL > 0 {
		c.TTL = TTL("Timestamp", t.TTL)
	}
	if c.TTL != "" {
		c.TTL = "\nTTL " + c.TTL
	}
	if c.Comment != "" {
		c.Comment = "\nCOMMENT " + QuoteText(c.Comment)
	}
	elements := strings.TrimSuffix(columns, "\n")
	for _, element := range c.Elements {
		elements += ",\n    " + element
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s (\n%s\n) ENGINE = %s\nPARTITION BY %s\nORDER BY (%s)%s\nSETTINGS %s%s",
		t.Quoted(suffix), t.OnCluster(), elements, c.Engine, PartitionKey, t.SortingKey(), c.TTL, strings.Join(append([]string{settings}, c.Settings...), ", "), c.Comment)
}

// Front returns the statement for the Distributed table in front of the rows.
func (t Table) Front() string {
	database := t.InDatabase()
	if t.Database != "" {
		database = QuoteName(t.Database)
	}
	cluster := QuoteName(t.Cluster)
	if t.Cluster[0] == '{' {
		cluster = QuoteText(t.Cluster)
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s AS %s\nENGINE = Distributed(%s, %s, %s, %s)",
		t.Quoted(""), t.OnCluster(), t.Quoted(t.Rows()), cluster, database, QuoteName(t.Named(t.Rows())), shard)
}

// TTL is the expression for a column of times.
func TTL(column string, ttl time.Duration) string {
	return fmt.Sprintf("toDateTime(%s) + toIntervalSecond(%d)", column, int64(ttl/time.Second))
}

// Suffixes of the exporter's lookup table and of the view that fills it.
const (
	Lookup     = "_trace_id_ts"
	LookupFeed = "_trace_id_ts_mv"
)

// TraceTimes returns the statements for the exporter's lookup table and the view that fills it,
// or for the views in their places.
func (t Table) TraceTimes() []string {
	if !t.KeepLookup {
		return t.views()
	}
	ttl := ""
	if t.TTL > 0 {
		ttl = "\nTTL " + TTL("Start", t.TTL)
	}
	return []string{
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s) ENGINE = MergeTree\nPARTITION BY toDate(Start)\nORDER BY (TraceId, Start)%s\nSETTINGS ttl_only_drop_parts = 1",
			t.Quoted(Lookup), lookupColumns, ttl),
		fmt.Sprintf("CREATE MATERIALIZED VIEW IF NOT EXISTS %s TO %s AS\nSELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End\nFROM %s WHERE TraceId != '' GROUP BY TraceId",
			t.Quoted(LookupFeed), t.Quoted(Lookup), t.Quoted("")),
	}
}

// The views have the names of the exporter's lookup table and of the view that fills
// it: an exporter that creates its schema at the start then finds everything there
// and adds nothing. Tools ask the first for the start and then for the end of one trace.
// With its setting the second question takes the granules from the query condition cache
// that the first one filled; without it both read the bloom filter.
func (t Table) views() []string {
	return []string{
		fmt.Sprintf("CREATE VIEW IF NOT EXISTS %s%s AS\nSELECT TraceId, toDateTime(min(Timestamp)) AS Start, toDateTime(max(Timestamp)) AS End\n"+
			"FROM %s WHERE TraceId != '' GROUP BY TraceId\nSETTINGS use_skip_indexes_on_data_read = 0", t.Quoted(Lookup), t.OnCluster(), t.Quoted("")),
		fmt.Sprintf("CREATE VIEW IF NOT EXISTS %s%s AS\nSELECT TraceId, Start, End FROM %s",
			t.Quoted(LookupFeed), t.OnCluster(), t.Quoted(Lookup)),
	}
}

// DropLookup removes the exporter's lookup table and the view that fills it, the
// view first so that inserts still work. It also removes the views of those names.
func (t Table) DropLookup() []string {
	return []string{
		"DROP VIEW IF EXISTS " + t.Quoted(LookupFeed) + t.OnCluster() + " SYNC",
		"DROP TABLE IF EXISTS " + t.Quoted(Lookup) + t.OnCluster() + " SYNC SETTINGS max_table_size_to_drop = 0",
	}
}

// RangeIndex has the lowest and the highest trace ID of each granule: with ordered IDs it excludes
// all granules of other times, without a condition on the time.
const RangeIndex = "idx_trace_id_range"

// AddRangeIndex returns the statement that adds RangeIndex to a table that others created. It must
// be the first index: ClickHouse reads indexes in their order, and the bloom filter is larger.
func (t Table) AddRangeIndex() string {
	return "ALTER TABLE " + t.Quoted("") + t.OnCluster() + " ADD INDEX IF NOT EXISTS " + RangeIndex + " TraceId TYPE minmax GRANULARITY 1 FIRST"
}

// MaterializeRangeIndex returns the statement that starts to build RangeIndex for old parts.
func (t Table) MaterializeRangeIndex() string {
	return "ALTER TABLE " + t.Quoted("") + t.OnCluster() + " MATERIALIZE INDEX " + RangeIndex + " SETTINGS mutations_sync = 0"
}
