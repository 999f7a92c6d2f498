package clickhouse

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
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
	return strings.NewReplacer(slices.Concat(more,
		s.place("spans", n.spans), s.place("lookup", n.lookup), s.place("logs", n.logs),
		s.place("rows", n.rows), s.place("times_rows", n.times), s.place("feed", n.feed),
		[]string{
			"{database}", s.inDatabase(), "{on_cluster}", s.onCluster(),
			"{columns}", list(quoteName, exporters()),
			"{our_key}", quoteText(sortingKey), "{outlier}", outlier,
			"{parts_of_shards}", s.everywhere("cluster", "system.parts"),
			"{parts_everywhere}", s.everywhere("clusterAllReplicas", "system.parts"),
			"{detached_everywhere}", s.everywhere("clusterAllReplicas", "system.detached_parts"),
			"{tables_everywhere}", s.everywhere("clusterAllReplicas", "system.tables"),
			"{mutations_everywhere}", s.everywhere("clusterAllReplicas", "system.mutations"),
		})...).Replace(template(name))
}

// place returns the placeholders for a table: {key} is its full name, quoted as an identifier, and
// {key_name} its name as a text.
func (s Schema) place(key, name string) []string {
	return []string{"{" + key + "}", s.quoted(name), "{" + key + "_name}", quoteText(name)}
}

// exported is a column that the Collector's exporter writes: its name, its type as in
// system.columns, and the beginning of its definition in our table, to which a TTL can be added.
type exported struct{ name, typ, definition string }

var columns = func() (all []exported) {
	line := regexp.MustCompile("(?m)^    `?([\\w.]+)`? (.+?) CODEC\\(.*\\)")
	for _, m := range line.FindAllStringSubmatch(template("spans"), -1) {
		all = append(all, exported{name: m[1], typ: m[2], definition: m[0]})
	}
	return all
}()

// exporters returns the names of the exporter's columns.
func exporters() (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// shard spreads traces evenly, keeps each on one shard, and is defined for any text. The high half
// would send all traces of a minute to one shard.
const shard = "reinterpretAsUInt64(reverse(unhex(substring(TraceId, 17, 16))))"

// bucket comes first in the keys, so that traces with random IDs stay among those of their time.
// Expressions of the keys are written as system.tables shows them.
const bucket = "toStartOfInterval(Timestamp, toIntervalHour(4), 'UTC')"

// outlier is 1 for a span that starts more than an hour from the time in its trace ID: random and
// foreign IDs, wrong clocks, late spans of long traces. These spans have granules of their own, so
// the IDs of any other granule are in a narrow range, which excludes it from most lookups.
var outlier = strings.ReplaceAll(template("outlier"), "\n    ", " ")

var (
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
// each granule; with a cache of primary keys, unused keys leave the memory. Parts of less than
// 32 MiB (instead of 10) have one file for all columns, which takes up to a fifth less CPU time for
// blocks of 10,000 to 30,000 spans. Texts in maps and arrays are stored with their lengths, not
// apart from them, which takes a tenth less CPU time and 6 % less disk.
const settings = "index_granularity = 1024, use_const_adaptive_granularity = 1, " +
	"use_primary_key_cache = 1, min_bytes_for_wide_part = 33554432, " +
	"propagate_types_serialization_versions_to_nested_types = 0, " +
	"min_compress_block_size = 8192, " + dropParts + "1, default_compression_codec = 'ZSTD(1)'"

// dropParts is the only one of the settings that an adopted table may have with another value.
const dropParts = "ttl_only_drop_parts = "

// createRows returns the statement for a table that holds the rows.
func (s Schema) createRows(name string, c carried) string {
	ttl, comment := s.ttlClause("Timestamp"), ""
	if inherited := clause(c.Full, "TTL"); inherited != "" {
		ttl = "\nTTL " + inherited
	}
	if c.Comment != "" {
		comment = "\nCOMMENT " + quoteText(c.Comment)
	}
	all := settings
	for _, setting := range c.settings {
		if all += ", " + setting; strings.HasPrefix(setting, dropParts) {
			all = strings.Replace(all, dropParts+"1, ", "", 1)
		}
	}
	places := []string{"{table}", s.quoted(name) + c.uuid, "{wide}", wide, "{engine}", c.Engine,
		"{elements}", strings.Join(append([]string{""}, c.elements...), ",\n    "),
		"{primary_key}", primaryKey, "{sorting_key}", sortingKey, "{ttl}", ttl,
		"{settings}", all,
		"{comment}", comment}
	ttls := ttls(c.table)
	for _, column := range columns {
		definition := column.definition
		if text := c.column(column.name).Comment; text != "" {
			definition = strings.Replace(definition, " CODEC(",
				" COMMENT "+quoteText(text)+" CODEC(", 1)
		}
		if ttl := ttls[quoteName(column.name)]; ttl != "" {
			definition += " TTL " + ttl
		}
		places = append(places, column.definition, definition)
	}
	return s.render("spans", places...)
}

// front returns the step that creates a Distributed table in front of a table that holds rows.
func (s Schema) front(name, rows string) Step {
	return exists(name, s.render("front", "{table}", s.quoted(name), "{local}", s.quoted(rows),
		"{cluster}", quoteName(s.Cluster), "{local_name}", quoteName(rows), "{shard}", shard))
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

// engine returns the engine of a new table alongside a table with an engine, or without another
// table if that is "". In a replicated database, a table that is not replicated would be on one
// server only.
func (s Schema) engine(o server, alongside string) string {
	switch {
	case strings.HasPrefix(alongside, "Shared"):
		return "SharedMergeTree"
	case strings.HasPrefix(alongside, "Replicated"),
		alongside == "" && (s.Cluster != "" || o.databaseEngine == "Replicated"):
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
