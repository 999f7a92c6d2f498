package clickhouse

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
	"time"
)

//go:embed sql
var files embed.FS

var comment = regexp.MustCompile(`(?m)^--.*\n`)

// template returns an SQL file without its comments.
func template(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // no such file: a mistake here
	}
	return strings.TrimSpace(comment.ReplaceAllString(string(text), ""))
}

// render returns a template with its placeholders filled in, such as {spans} by the quoted name of
// the table.
func (s Schema) render(name string, more ...string) string {
	n := s.named()
	return strings.NewReplacer(append([]string{
		"{spans}", s.quoted(n.spans), "{rows}", s.quoted(n.rows),
		"{lookup}", s.quoted(n.lookup), "{times_rows}", s.quoted(n.times),
		"{feed}", s.quoted(n.feed),
		"{on_cluster}", s.onCluster(),
	}, more...)...).Replace(template(name))
}

// columns matches the definition, the name and the type (as in system.columns) of each column that
// the Collector's exporter writes.
var columns = regexp.MustCompile("(?m)^    `?([\\w.]+)`? (.+?) CODEC").
	FindAllStringSubmatch(template("spans"), -1)

// columnNames returns the list of the exporter's columns.
func columnNames() string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c[1]
	}
	return quoteNames(names)
}

// shard spreads traces evenly, keeps each on one shard, and is defined for any text. The high half
// would send all traces of a minute to one shard.
const shard = "reinterpretAsUInt64(reverse(unhex(substring(TraceId, 17, 16))))"

// Expressions of the keys, as system.tables shows them.
const (
	// bucket comes first, so that traces with random IDs stay among those of their time.
	bucket = "toStartOfInterval(Timestamp, toIntervalHour(4), 'UTC')"
	// outlier is 1 for a span that starts more than an hour from the time in its trace ID: random
	// and foreign IDs, wrong clocks, late spans of long traces. These spans have granules of their
	// own, so the IDs of any other granule are in a narrow range, which excludes it from most
	// lookups. The first 8 digits count units of 512 ms since 2020. Outside of the two hours the
	// difference is large, or negative and so large as an unsigned number.
	outlier = "toUInt64(((toInt64(byteSwap(reinterpretAsUInt32(unhex(substring(TraceId, 1, 8)))))" +
		" * 512) + 1577840400000) - toUnixTimestamp64Milli(Timestamp)) > 7200000"
	// primaryKey is the beginning of the sorting key. The rest would take 40 of 46 bytes of memory
	// for each granule, permanently; the indexes on ranges of TraceId and Timestamp do the same
	// work from disk.
	primaryKey = bucket + ", " + outlier + ", ServiceName, SpanName"
	// sortingKey has the outliers in the order of time: by random IDs, a merge would take each span
	// from another part than the one before.
	sortingKey = primaryKey + ", if(" + outlier + ", '', TraceId), Timestamp"
)

// wide are the settings of columns that queries read of few spans or of none: larger blocks than
// those of the table take less time to compress, and less disk.
const wide = " SETTINGS (min_compress_block_size = 65536)"

// settings of the table that holds the rows. The size of granules determines memory, the minimum
// that a query reads, and the cost of merges. If it is constant, ClickHouse does not store it for
// each granule; with a cache of primary keys, unused keys leave the memory.
const settings = "index_granularity = 1024, use_const_adaptive_granularity = 1, " +
	"use_primary_key_cache = 1, min_compress_block_size = 8192, ttl_only_drop_parts = 1, " +
	"default_compression_codec = 'ZSTD(1)'"

// createRows returns the statement for a table that holds the rows.
func (s Schema) createRows(name string, c carried) string {
	ttl := s.ttlClause("Timestamp")
	if c.ttl != "" {
		ttl = "\nTTL " + c.ttl
	}
	if c.comment != "" {
		c.comment = "\nCOMMENT " + quoteText(c.comment)
	}
	var elements string
	for _, element := range c.elements {
		elements += ",\n    " + element
	}
	sql := s.render("spans", "{table}", s.quoted(name)+c.uuid, "{elements}", elements,
		"{wide}", wide, "{engine}", s.engine(c.engine),
		"{primary_key}", primaryKey, "{sorting_key}", sortingKey, "{ttl}", ttl,
		"{settings}", strings.Join(append([]string{settings}, c.settings...), ", "),
		"{comment}", c.comment)
	return withTTLs(sql, c.ttls)
}

// front returns the step that creates a Distributed table in front of a table that holds rows.
func (s Schema) front(name, rows string) Step {
	return exists(name, s.render("front", "{table}", s.quoted(name), "{local}", s.quoted(rows),
		"{cluster}", s.quotedCluster(), "{database}", s.inDatabase(),
		"{local_name}", quoteName(rows), "{shard}", shard))
}

// ttlOf returns the TTL expression for a column of times.
func (s Schema) ttlOf(column string) string {
	return fmt.Sprintf("toDateTime(%s) + toIntervalSecond(%d)", column, int64(s.TTL/time.Second))
}

func (s Schema) ttlClause(column string) string {
	if s.TTL == 0 {
		return ""
	}
	return "\nTTL " + s.ttlOf(column)
}

// lookup returns the steps that create the lookup table, if it is missing, and the materialized
// view that fills it. If spans may exist, the steps also fill the lookup table from them: a missing
// view means that the lookup table was dropped, or that Create was interrupted. So the view is
// created after that, and then the spans stored meanwhile are added.
func (s Schema) lookup(o server, from string) []Step {
	n := s.named()
	stored := o.table(n.rows)
	engine := s.engine(stored.Engine)
	steps := []Step{exists(n.times, s.render("lookup", "{uuid}", s.ownUUID(o, engine),
		"{engine}", engine, "{ttl}", s.lookupTTL(stored)))}
	if n.times != n.lookup {
		steps = append(steps, s.front(n.lookup, n.times))
	}
	feed := exists(n.feed, s.render("feed"))
	if !stored.exists() || o.table(n.feed).exists() {
		return append(steps, feed)
	}
	return append(steps, s.fill(from, ""), feed, s.fill(from, recent))
}

// recent is the condition for spans that may have been stored before the materialized view existed,
// or that it missed during an exchange.
const recent = "\n    AND Timestamp > now() - INTERVAL 10 MINUTE"

// fill returns the step that adds the traces of tables to the lookup table.
func (s Schema) fill(from, which string) Step {
	does := s.named().times + " has all traces"
	if which != "" {
		does = s.named().times + " has the traces of the last ten minutes (again)"
	}
	return Step{Does: does, SQL: []string{s.render("fill", "{from}", from, "{which}", which)}}
}

// lookupTTL returns the TTL clause of the lookup table, which keeps a trace as long as its spans.
func (s Schema) lookupTTL(of table) string {
	if s.TTL != 0 {
		return s.ttlClause("End")
	}
	for _, part := range split(clause(of.Full, "TTL")) {
		if onlyDrops.MatchString(part) {
			return "\nTTL " + strings.Replace(part, "Timestamp", "End", 1)
		}
	}
	return ""
}

// engine returns the engine of a new table alongside a table with an engine, or without another
// table if that is "".
func (s Schema) engine(alongside string) string {
	switch {
	case strings.HasPrefix(alongside, "Shared"):
		return "SharedMergeTree"
	case strings.HasPrefix(alongside, "Replicated"),
		alongside == "" && (s.Cluster != "" || s.replicated):
		return "ReplicatedMergeTree"
	}
	return "MergeTree"
}

// ownUUID returns the clause that sets the UUID of a replicated table on a single server. Without
// it, the server refuses its default path in Keeper, which contains the UUID.
func (s Schema) ownUUID(o server, engine string) string {
	if engine != "ReplicatedMergeTree" || s.Cluster != "" || o.databaseEngine != "Atomic" {
		return ""
	}
	return " UUID " + quoteText(newUUID())
}

// rangeIndex has the lowest and the highest trace ID of each granule: with ordered IDs it excludes
// all granules of other times, without a condition on the time.
const rangeIndex = "idx_trace_id_range"

// addRangeIndex returns the statement that adds the index to a table that others created. It must
// be the first index: ClickHouse reads indexes in order, and the bloom filter is larger.
func (s Schema) addRangeIndex(name string) string {
	return "ALTER TABLE " + s.quoted(name) + s.onCluster() +
		" ADD INDEX IF NOT EXISTS " + rangeIndex + " TraceId TYPE minmax GRANULARITY 1 FIRST"
}
