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
	return serviceKey + ", TraceId, Timestamp"
}

// serviceKey is the primary key of the table sorted by service, and the beginning of its sorting key.
// The rest would take 40 of 46 bytes of memory for each granule, for ever; the indexes on
// ranges of TraceId and Timestamp do the same work from disk.
const serviceKey = "toStartOfInterval(Timestamp, toIntervalHour(4), 'UTC'), ServiceName, SpanName"

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

// settings of the table that holds the rows. Memory, the least that a query reads, and the cost of
// merges depend on the size of granules. If it is constant, ClickHouse keeps no size of each; with a cache
// of primary keys, those that nobody uses leave the memory.
const settings = "index_granularity = 1024, use_const_adaptive_granularity = 1, use_primary_key_cache = 1, " +
	"min_compress_block_size = 8192, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)'"

// CreateRows returns the statement for the table that holds the rows, under the name with a suffix.
func (t Table) CreateRows(suffix string, c Carried) string {
	if c.Engine == "" {
		c.Engine = t.engine()
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
	primary, elements := "\nPRIMARY KEY ("+serviceKey+")", strings.TrimSuffix(columns, "\n")
	if t.TraceFirst {
		primary = ""
		// Neighbours have different resources, which repeat over a few thousand spans.
		const resources = "    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1, 20))"
		elements = strings.Replace(elements, resources, resources+" SETTINGS (min_compress_block_size = 262144, max_compress_block_size = 1048576)", 1)
	}
	for _, element := range c.Elements {
		elements += ",\n    " + element
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s (\n%s\n) ENGINE = %s\nPARTITION BY %s%s\nORDER BY (%s)%s\nSETTINGS %s%s",
		t.Quoted(suffix), t.OnCluster(), elements, c.Engine, PartitionKey, primary, t.SortingKey(), c.TTL, strings.Join(append([]string{settings}, c.Settings...), ", "), c.Comment)
}

// Front returns the statement for the Distributed table in front of the rows, or of the lookup table's.
func (t Table) Front(suffix string) string {
	database := t.InDatabase()
	if t.Database != "" {
		database = QuoteName(t.Database)
	}
	cluster := QuoteName(t.Cluster)
	if t.Cluster[0] == '{' {
		cluster = QuoteText(t.Cluster)
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s AS %s\nENGINE = Distributed(%s, %s, %s, %s)",
		t.Quoted(suffix), t.OnCluster(), t.Quoted(suffix+t.Rows()), cluster, database, QuoteName(t.Named(suffix+t.Rows())), shard)
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
// or for the views in their places. On a cluster the lookup table's rows have a table of their own, as those of spans.
func (t Table) TraceTimes() []string {
	if !t.KeepLookup {
		return t.views()
	}
	ttl := ""
	if t.TTL > 0 {
		ttl = "\nTTL " + TTL("Start", t.TTL)
	}
	rows := Lookup + t.Rows()
	all := []string{fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s (\n%s) ENGINE = %s\nPARTITION BY toDate(Start)\nORDER BY (TraceId, Start)%s\nSETTINGS ttl_only_drop_parts = 1",
		t.Quoted(rows), t.OnCluster(), lookupColumns, t.engine(), ttl)}
	if t.Cluster != "" {
		all = append(all, t.Front(Lookup))
	}
	return append(all, fmt.Sprintf("CREATE MATERIALIZED VIEW IF NOT EXISTS %s%s TO %s AS\nSELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End\nFROM %s WHERE TraceId != '' GROUP BY TraceId",
		t.Quoted(LookupFeed), t.OnCluster(), t.Quoted(rows), t.Quoted(t.Rows())))
}

func (t Table) engine() string {
	if t.Cluster == "" {
		return "MergeTree"
	}
	return "ReplicatedMergeTree"
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
