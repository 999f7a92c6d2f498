package clickhouse

import (
	"cmp"
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
	return strings.NewReplacer(append([]string{
		"{spans}", s.quoted(""),
		"{outliers}", s.quoted(outlierTimes), "{outlier_rows}", s.quoted(outlierTimes + s.rows()),
		"{lookup}", s.quoted(lookup),
		"{on_cluster}", s.onCluster(),
		"{outlier}", outlier, "{bucket}", bucket,
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
		names[i] = quoteName(c[1])
	}
	return strings.Join(names, ", ")
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

// createRows returns the statement for the table that holds the rows, under the name with a suffix.
func (s Schema) createRows(suffix string, c carried) string {
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
	sql := s.render("spans", "{table}", s.quoted(suffix)+c.uuid, "{elements}", elements,
		"{engine}", cmp.Or(c.engine, s.engine()),
		"{primary_key}", primaryKey, "{sorting_key}", sortingKey, "{ttl}", ttl,
		"{settings}", strings.Join(append([]string{settings}, c.settings...), ", "),
		"{comment}", c.comment)
	return withTTLs(sql, c.ttls)
}

// front is the step that creates the Distributed table in front of the rows, or of the outliers'.
func (s Schema) front(suffix string) Step {
	local := suffix + s.rows()
	return s.exists(suffix,
		s.render("front", "{table}", s.quoted(suffix), "{local}", s.quoted(local),
			"{cluster}", s.quotedCluster(), "{database}", s.inDatabase(),
			"{local_name}", quoteName(s.named(local)), "{shard}", shard))
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

// Suffixes; the first two are those of the exporter's lookup table and of the view that fills it.
const (
	lookup       = "_trace_id_ts"
	lookupFeed   = "_trace_id_ts_mv"
	outlierTimes = "_outliers"
	outlierFeed  = "_outliers_mv"
)

// outliers are the steps that create the table of the times of outliers, and the materialized view
// that fills it from the table that holds the rows. The TTL is for End.
func (s Schema) outliers(from, engine, ttl string) []Step {
	rows := outlierTimes + s.rows()
	steps := []Step{s.exists(rows, s.render("outliers", "{engine}", engine, "{ttl}", ttl))}
	if s.Cluster != "" {
		steps = append(steps, s.front(outlierTimes))
	}
	feed := "CREATE MATERIALIZED VIEW IF NOT EXISTS " + s.quoted(outlierFeed) + s.onCluster() +
		" TO " + s.quoted(rows) + " AS\n"
	return append(steps, s.exists(outlierFeed, feed+s.render("outlier_times", "{from}", from)))
}

// fillOutliers is the step that adds the times of outliers that were stored before the materialized
// view existed, or during an exchange.
func (s Schema) fillOutliers(from string) Step {
	return Step{
		Does: s.named(outlierTimes) + " has the times of the outliers that are stored",
		SQL: []string{"INSERT INTO " + s.quoted(outlierTimes+s.rows()) +
			" (TraceId, Start, End)\n" +
			s.render("outlier_times", "{from}", from)},
	}
}

// traceTimes are the steps that create views with the names of the exporter's lookup table and of
// the view that fills it: an exporter that creates its schema at the start then finds everything
// there and adds nothing. If the lookup table exists, nothing changes.
func (s Schema) traceTimes() []Step {
	view := "lookup"
	if s.Overlay {
		view = "lookup_overlay"
	}
	feed := "CREATE VIEW IF NOT EXISTS " + s.quoted(lookupFeed) + s.onCluster() +
		" AS\nSELECT TraceId, Start, End FROM " + s.quoted(lookup)
	return []Step{s.exists(lookup, s.render(view)), s.exists(lookupFeed, feed)}
}

func (s Schema) engine() string {
	if s.Cluster == "" && !s.replicated {
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
	return "ALTER TABLE " + s.quoted("") + s.onCluster() +
		" ADD INDEX IF NOT EXISTS " + rangeIndex + " TraceId TYPE minmax GRANULARITY 1 FIRST"
}
