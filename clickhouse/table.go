package clickhouse

import (
	"crypto/rand"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
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
		s.place("spans", n.spans), s.place("lookup", n.lookup),
		s.place("rows", n.rows), s.place("times_rows", n.times), s.place("feed", n.feed),
		[]string{
			"{database}", s.inDatabase(), "{on_cluster}", s.onCluster(),
			"{columns}", list(quoteName, exporters()),
			"{our_key}", quoteText(sortingKey),
			"{parts_of_shards}", s.everywhere("cluster", "system.parts"),
			"{parts_everywhere}", s.everywhere("clusterAllReplicas", "system.parts"),
			"{detached_everywhere}", s.everywhere("clusterAllReplicas", "system.detached_tables"),
			"{tables_everywhere}", s.everywhere("clusterAllReplicas", "system.tables"),
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

// shard spreads traces evenly, keeps each on one shard, and is defined for any text. The clear half
// would send all traces of a minute to one shard.
const shard = "reinterpretAsUInt64(reverse(unhex(substring(TraceId, 17, 16))))"

// bucket comes first in the keys, so that traces with random IDs stay among those of their time.
// Expressions of the keys are written as system.tables shows them.
const bucket = "toStartOfFiveMinutes(Timestamp)"

// sortingKey is that of the table, without its direction.
const sortingKey = bucket + ", TraceId, Timestamp"

// newestFirst is the first version on which a new table has the newest buckets first: then
// ClickHouse stops reading once it has the newest spans of a service. Before it, the analysis of
// the index of a descending key could lose rows (ClickHouse #111059 and #110546). 26.6.2.122 does
// not lose any, but a descending key is an experiment there.
const newestFirst = "26.7.2.15"

// descending returns the direction of the first column of the sorting key.
func (s Schema) descending() string {
	if since(s.Version, newestFirst) {
		return " DESC"
	}
	return ""
}

// since reports whether a version is at least another one. "" is older than all others.
func since(version, first string) bool {
	numbers := func(version string) (all [4]int) {
		for i, part := range strings.SplitN(version, ".", len(all)) {
			all[i], _ = strconv.Atoi(part)
		}
		return all
	}
	v, f := numbers(version), numbers(first)
	return slices.Compare(v[:], f[:]) >= 0
}

// settings of the table that holds the rows. Projections are compressed with the default codec,
// whatever the codecs of the columns.
const settings = "index_granularity = 4096, " + dropParts +
	"1, " + smallBlocks + "1024, default_compression_codec = 'ZSTD(3)'"

// smallBlocks is the size from which a compressed block may end. Each granule of a column or an
// index then has its own block, so that a question for one ID reads one granule of the bloom filter
// in each bucket, not the 64 kB around it.
const smallBlocks = "min_compress_block_size = "

// dropParts is the only one of the settings that an adopted table may have with another value.
const dropParts = "ttl_only_drop_parts = "

// createRows returns the statement for a table that holds the rows.
func (s Schema) createRows(name, engine string) string {
	projection := s.Projection.element()
	if projection != "" {
		projection = ",\n    " + projection
	}
	return s.render("spans", "{table}", s.quoted(name), "{engine}", engine,
		"{projection}", projection, "{bucket}", bucket, "{desc}", s.descending(),
		"{ttl}", s.ttlClause("Timestamp"), "{settings}", settings)
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

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
