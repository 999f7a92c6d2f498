package clickhouse

import (
	"cmp"
	_ "embed" // the SQL
	"fmt"
	"regexp"
	"strings"
	"time"
)

var (
	//go:embed sql/columns.sql
	definitions string
	//go:embed sql/lookup.sql
	lookupDefinitions string
)

// columns are those that the Collector's exporter writes: what defines each, its name, and its
// type as in system.columns.
var columns = regexp.MustCompile("(?m)^    `?([\\w.]+)`? (.+?) CODEC").FindAllStringSubmatch(definitions, -1)

// columnNames is the list of the exporter's columns.
func columnNames() string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = quoteName(c[1])
	}
	return strings.Join(names, ", ")
}

// shard spreads traces evenly, keeps each on one shard, and is defined for any
// text. The high half would send all of a minute to one shard.
const shard = "reinterpretAsUInt64(reverse(unhex(substring(TraceId, 17, 16))))"

// sortingKey is that of the table, as system.tables shows it. Time comes first, in
// coarse steps, so that traces with random IDs stay among those of their time.
func (s Schema) sortingKey() string {
	if s.Layout == TraceFirst {
		return "toStartOfHour(Timestamp), TraceId, Timestamp"
	}
	return serviceKey + ", TraceId, Timestamp"
}

// serviceKey is the primary key of the table sorted by service, and the beginning of its sorting key.
// The rest would take 40 of 46 bytes of memory for each granule, permanently; the indexes on
// ranges of TraceId and Timestamp do the same work from disk.
const serviceKey = "toStartOfInterval(Timestamp, toIntervalHour(4), 'UTC'), ServiceName, SpanName"

// carried is what a new table takes over from the one whose place it takes.
type carried struct {
	engine   string   // "" is MergeTree, on a cluster ReplicatedMergeTree
	elements []string // columns other than the exporter's; indexes, constraints and projections other than the layout's
	ttl      string   // expressions; "" is by Schema.TTL
	settings []string // each as in storage_policy = 'cold'
	comment  string

	readable []string // names of all columns that can be read
	notes    []string // what is not taken over
}

// settings of the table that holds the rows. Memory, the least that a query reads, and the cost of
// merges depend on the size of granules. If it is constant, ClickHouse keeps no size of each; with a cache
// of primary keys, those that nobody uses leave the memory.
const settings = "index_granularity = 1024, use_const_adaptive_granularity = 1, use_primary_key_cache = 1, " +
	"min_compress_block_size = 8192, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)'"

// createRows returns the statement for the table that holds the rows, under the name with a suffix.
func (s Schema) createRows(suffix string, c carried) string {
	ttl := s.ttlClause("Timestamp")
	if c.ttl != "" {
		ttl = "\nTTL " + c.ttl
	}
	if c.comment != "" {
		c.comment = "\nCOMMENT " + quoteText(c.comment)
	}
	primary, layout := "\nPRIMARY KEY ("+serviceKey+")", strings.TrimSuffix(definitions, "\n")
	if s.Layout == TraceFirst {
		primary = ""
		// Neighbours have different resources, which repeat over a few thousand spans.
		const resources = "    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1, 20))"
		layout = strings.Replace(layout, resources, resources+" SETTINGS (min_compress_block_size = 262144, max_compress_block_size = 1048576)", 1)
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s (\n%s\n) ENGINE = %s\nPARTITION BY toDate(Timestamp)%s\nORDER BY (%s)%s\nSETTINGS %s%s",
		s.quoted(suffix), s.onCluster(), strings.Join(append([]string{layout}, c.elements...), ",\n    "), cmp.Or(c.engine, s.engine()),
		primary, s.sortingKey(), ttl, strings.Join(append([]string{settings}, c.settings...), ", "), c.comment)
}

// front is the step that creates the Distributed table in front of the rows, or of the lookup table's.
func (s Schema) front(suffix string) Step {
	return s.exists(suffix, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s AS %s\nENGINE = Distributed(%s, %s, %s, %s)",
		s.quoted(suffix), s.onCluster(), s.quoted(suffix+s.rows()), s.quotedCluster(), s.inDatabase(), quoteName(s.named(suffix+s.rows())), shard))
}

// ttlOf is the expression for a column of times.
func (s Schema) ttlOf(column string) string {
	return fmt.Sprintf("toDateTime(%s) + toIntervalSecond(%d)", column, int64(s.TTL/time.Second))
}

func (s Schema) ttlClause(column string) string {
	if s.TTL == 0 {
		return ""
	}
	return "\nTTL " + s.ttlOf(column)
}

// Suffixes of the exporter's lookup table and of the view that fills it.
const (
	lookup     = "_trace_id_ts"
	lookupFeed = "_trace_id_ts_mv"
)

// traceTimes are the steps that create the exporter's lookup table and the view that fills it, or views in
// their places. On a cluster the lookup table's rows have a table of their own, as those of spans.
//
// The views have the names of the lookup table and of the view that fills it: an exporter that creates its
// schema at the start then finds everything there and adds nothing. Tools ask the first for the start and
// then for the end of one trace. With its setting the second question takes the granules from the query
// condition cache that the first one filled; without it both read the bloom filter.
func (s Schema) traceTimes() []Step {
	if !s.KeepLookup {
		return []Step{
			s.exists(lookup, fmt.Sprintf("CREATE VIEW IF NOT EXISTS %s%s AS\nSELECT TraceId, toDateTime(min(Timestamp)) AS Start, toDateTime(max(Timestamp)) AS End\n"+
				"FROM %s WHERE TraceId != '' GROUP BY TraceId\nSETTINGS use_skip_indexes_on_data_read = 0", s.quoted(lookup), s.onCluster(), s.quoted(""))),
			s.exists(lookupFeed, fmt.Sprintf("CREATE VIEW IF NOT EXISTS %s%s AS\nSELECT TraceId, Start, End FROM %s", s.quoted(lookupFeed), s.onCluster(), s.quoted(lookup))),
		}
	}
	rows := lookup + s.rows()
	steps := []Step{s.exists(rows, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s (\n%s) ENGINE = %s\nPARTITION BY toDate(Start)\nORDER BY (TraceId, Start)%s\nSETTINGS ttl_only_drop_parts = 1",
		s.quoted(rows), s.onCluster(), lookupDefinitions, s.engine(), s.ttlClause("Start")))}
	if s.Cluster != "" {
		steps = append(steps, s.front(lookup))
	}
	return append(steps, s.exists(lookupFeed, fmt.Sprintf("CREATE MATERIALIZED VIEW IF NOT EXISTS %s%s TO %s AS\nSELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End\nFROM %s WHERE TraceId != '' GROUP BY TraceId",
		s.quoted(lookupFeed), s.onCluster(), s.quoted(rows), s.quoted(s.rows()))))
}

func (s Schema) engine() string {
	if s.Cluster == "" {
		return "MergeTree"
	}
	return "ReplicatedMergeTree"
}

// rangeIndex has the lowest and the highest trace ID of each granule: with ordered IDs it excludes
// all granules of other times, without a condition on the time.
const rangeIndex = "idx_trace_id_range"

// addRangeIndex returns the statement that adds the index to a table that others created. It must
// be the first: ClickHouse reads indexes in their order, and the bloom filter is larger.
func (s Schema) addRangeIndex() string {
	return "ALTER TABLE " + s.quoted("") + s.onCluster() + " ADD INDEX IF NOT EXISTS " + rangeIndex + " TraceId TYPE minmax GRANULARITY 1 FIRST"
}
