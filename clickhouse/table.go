package clickhouse

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

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

// sortingKey is that of the table, without its direction, as system.tables shows it. The bucket
// comes first, so that traces with random IDs stay among those of their time.
const sortingKey = "toStartOfFiveMinutes(Timestamp), TraceId, Timestamp"

// newestFirst is the first version on which a new table has the newest buckets first: then
// ClickHouse stops reading once it has the newest spans of a service. Before it, the analysis of
// the index of a descending key could lose rows (ClickHouse #111059 and #110546). 26.6.2.122 does
// not lose any, but a descending key is an experiment there.
const newestFirst = "26.7.2.15"

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

// created returns the values for the table that holds the rows.
func (o *adoption) created() values {
	v := o.values()
	v.Engine, v.Projection, v.Settings = o.engine(""), o.Projection.element(), settings
	v.Newest, v.TTL = since(o.Version, newestFirst), o.ttlOf("Timestamp")
	return v
}

// front returns the step that creates a Distributed table in front of a table that holds rows.
func (o *adoption) front(name, rows string) []Step {
	v := o.values()
	v.Front, v.Behind = name, rows
	return o.steps("front", v)
}

// ttlOf returns the TTL expression for a column of times, or "".
func (s Schema) ttlOf(column string) string {
	if s.TTL == 0 {
		return ""
	}
	return fmt.Sprintf("toDateTime(%s) + toIntervalSecond(%d)", column, int64(s.TTL/time.Second))
}

// engine returns the engine of a new table alongside a table with an engine, or without another
// table if that is "". In a replicated database, a table that is not replicated would be on one
// server only.
func (o *adoption) engine(alongside string) string {
	switch {
	case strings.HasPrefix(alongside, "Shared"):
		return "SharedMergeTree"
	case strings.HasPrefix(alongside, "Replicated"),
		alongside == "" && (o.Cluster != "" || o.DatabaseEngine == "Replicated"):
		return "ReplicatedMergeTree"
	}
	return "MergeTree"
}

// ownUUID returns the clause that sets the UUID of a replicated table on a single server. Without
// it, the server refuses its default path in Keeper, which contains the UUID.
func (o *adoption) ownUUID(engine string) string {
	if engine != "ReplicatedMergeTree" || o.Cluster != "" || o.DatabaseEngine != "Atomic" {
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
