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

// template returns one of the files of SQL, without comments.
func template(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // no such file: a mistake here
	}
	return strings.TrimSpace(comment.ReplaceAllString(string(text), ""))
}

// render fills in a template, in which {spans} stands for the quoted name of that table, and so on.
func (s Schema) render(name string, more ...string) string {
	n := s.named()
	return strings.NewReplacer(append([]string{
		"{spans}", s.quoted(n.spans), "{rows}", s.quoted(n.rows),
		"{lookup}", s.quoted(n.lookup), "{times_rows}", s.quoted(n.times),
		"{feed}", s.quoted(n.feed),
		"{on_cluster}", s.onCluster(),
	}, more...)...).Replace(template(name))
}

// columns are those that the Collector's exporter writes: what defines each, its name, and its
// type as in system.columns.
var columns = regexp.MustCompile("(?m)^    `?([\\w.]+)`? (.+?) CODEC").
	FindAllStringSubmatch(template("spans"), -1)

// columnNames is the list of the exporter's columns.
func columnNames() string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c[1]
	}
	return quoteNames(names)
}

// shard spreads traces evenly, keeps each on one shard, and is defined for any
// text. The high half would send all of a minute to one shard.
const shard = "reinterpretAsUInt64(reverse(unhex(substring(TraceId, 17, 16))))"

// Expressions of the keys, as system.tables shows them.
const (
	// bucket comes first, so that traces with random IDs stay among those of their time.
	bucket = "toStartOfInterval(Timestamp, toIntervalHour(4), 'UTC')"
	// outlier is 1 for a span whose trace ID's time is not within an hour of its own: random and
	// foreign IDs, wrong clocks, late spans of long traces. These spans have granules of their own,
	// so the IDs of any other granule are in a narrow range, which excludes it from most lookups.
	// The first 8 digits count units of 512 ms since 2020; outside of the two hours, the difference
	// is negative, and therefore large, or large.
	outlier = "toUInt64(((toInt64(byteSwap(reinterpretAsUInt32(unhex(substring(TraceId, 1, 8)))))" +
		" * 512) + 1577840400000) - toUnixTimestamp64Milli(Timestamp)) > 7200000"
	// primaryKey is the beginning of the sorting key. The rest would take 40 of 46 bytes of memory
	// for each granule, permanently; the indexes on ranges of TraceId and Timestamp do the same
	// work from disk.
	primaryKey = bucket + ", " + outlier + ", ServiceName, SpanName"
	sortingKey = primaryKey + ", TraceId, Timestamp"
)

// settings of the table that holds the rows. Memory, the least that a query reads, and the cost of
// merges depend on the size of granules. If it is constant, ClickHouse keeps no size of each; with
// a cache of primary keys, those that nobody uses leave the memory.
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
		"{engine}", s.engine(c.engine),
		"{primary_key}", primaryKey, "{sorting_key}", sortingKey, "{ttl}", ttl,
		"{settings}", strings.Join(append([]string{settings}, c.settings...), ", "),
		"{comment}", c.comment)
	return withTTLs(sql, c.ttls)
}

// front is the step that creates a Distributed table in front of one that holds rows.
func (s Schema) front(name, rows string) Step {
	return exists(name, s.render("front", "{table}", s.quoted(name), "{local}", s.quoted(rows),
		"{cluster}", s.quotedCluster(), "{database}", s.inDatabase(),
		"{local_name}", quoteName(rows), "{shard}", shard))
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

// lookup are the steps that create the lookup table, if there is none, and the materialized view
// that fills it. If there may be spans, they fill it from these tables, too: without that view,
// somebody dropped the lookup table, or Create was interrupted. So the view comes last, and then
// what was stored meanwhile.
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

// recent is the condition for what may have been stored before the materialized view existed, or
// was missed by it during an exchange.
const recent = "\n    AND Timestamp > now() - INTERVAL 10 MINUTE"

// fill is the step that adds the traces of tables to the lookup table.
func (s Schema) fill(from, which string) Step {
	does := s.named().times + " has all traces"
	if which != "" {
		does = s.named().times + " has the traces of the last ten minutes (again)"
	}
	return Step{Does: does, SQL: []string{s.render("fill", "{from}", from, "{which}", which)}}
}

// lookupTTL is the clause of the lookup table: it keeps a trace as long as its spans are kept.
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

// engine is the engine of a new table alongside one of an engine, "" if there is none.
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

// ownUUID is the clause that gives a replicated table of a single server a UUID: without one, the
// server refuses its default path in Keeper, which contains the UUID.
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
// be the first: ClickHouse reads indexes in their order, and the bloom filter is larger.
func (s Schema) addRangeIndex(name string) string {
	return "ALTER TABLE " + s.quoted(name) + s.onCluster() +
		" ADD INDEX IF NOT EXISTS " + rangeIndex + " TraceId TYPE minmax GRANULARITY 1 FIRST"
}
