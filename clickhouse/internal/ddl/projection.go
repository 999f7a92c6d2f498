package ddl

import (
	"fmt"
	"strings"
)

// projection is a second order of some columns.
type projection struct {
	name     string
	columns  []string
	where    string // "" is all rows
	order    []string
	granules int // rows of a granule; 0 is the table's
}

// search serves lists of spans, counts and rates by service and name.
var search = projection{
	name:    "search",
	columns: []string{"TraceId", "SpanKind", "Duration", "StatusCode", "StatusMessage"},
	order:   []string{"ServiceName", "SpanName", "Timestamp"},
}

// roots serves lists of traces. ClickHouse turns a comparison of ParentSpanId
// with the empty string into this condition, and matches it if ParentSpanId is among the
// columns and has a skip index, which keeps the condition from being rewritten
// further. A projection with a condition lists the columns of its order, too.
var roots = projection{
	name:    "roots",
	columns: []string{"TraceId", "ParentSpanId", "ServiceName", "Timestamp", "SpanName", "SpanKind", "Duration", "StatusCode"},
	where:   "empty(ParentSpanId)",
	order:   []string{"ServiceName", "Timestamp"},
}

func (p projection) sql() string {
	var where, settings string
	if p.where != "" {
		where = "\n        WHERE " + p.where
	}
	if p.granules > 0 {
		settings = fmt.Sprintf(" WITH SETTINGS (index_granularity = %d)", p.granules)
	}
	return fmt.Sprintf("    PROJECTION %s (\n        SELECT %s%s\n        ORDER BY %s\n    )%s",
		p.name, strings.Join(p.columns, ", "), where, strings.Join(p.order, ", "), settings)
}

// isThere is a condition on a table's row in system.tables: it has the
// projection with these columns, or more, in this order.
func (p projection) isThere() string {
	names := make([]string, len(p.columns))
	for i, name := range p.columns {
		names[i] = QuoteText(name)
	}
	var where string
	if p.where != "" {
		where = ` WHERE ` + strings.NewReplacer("(", `\(`, ")", `\)`).Replace(p.where)
	}
	pattern := `PROJECTION ` + p.name + ` \(SELECT ([^()]+)` + where + ` ORDER BY \(?` + strings.Join(p.order, ", ") + `[,)]`
	return fmt.Sprintf("hasAll(splitByString(', ', extract(create_table_query, %s)), [%s])",
		QuoteText(pattern), strings.Join(names, ", "))
}

// Sizes of granules. A trace is some tens of spans: the smaller the granule,
// the fewer other spans are read; below these sizes storing costs more than it saves.
const (
	plainGranule  = 8192
	fineGranule   = 1024
	searchGranule = 512
	rootsGranule  = 256
)

// projections are those of the table.
func (t Table) projections() []projection {
	if t.Plain {
		return []projection{search}
	}
	s, r := search, roots
	s.granules, r.granules = searchGranule, rootsGranule
	return []projection{s, r}
}

// columns are the columns, indexes and projections of the table.
func (t Table) columns() string {
	granule, large, parent := fineGranule, largeBlocks, ",\n    INDEX idx_parent_span_id ParentSpanId TYPE minmax GRANULARITY 1000"
	if t.Plain {
		granule, large, parent = plainGranule, "", ""
	}
	text := strings.NewReplacer("{blooms}", fmt.Sprint(plainGranule/granule), "{large blocks}", large).Replace(columns)
	text = strings.TrimSuffix(text, "\n") + parent
	for _, p := range t.projections() {
		text += ",\n" + p.sql()
	}
	return text + "\n"
}

// largeBlocks keep the compression of a column whose values repeat over many
// granules.
const largeBlocks = " SETTINGS (min_compress_block_size = 262144, max_compress_block_size = 1048576)"

// settings are those of the table. A lightweight DELETE drops the projections of
// the parts that it changes, and the next merge rebuilds them: rebuilt at once
// they would still contain deleted rows (ClickHouse #111791).
func (t Table) settings() string {
	granule, blocks := fineGranule, ", min_compress_block_size = 16384"
	if t.Plain {
		granule, blocks = plainGranule, ""
	}
	return fmt.Sprintf("index_granularity = %d%s, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)',\n"+
		"    lightweight_mutation_projection_mode = 'drop'", granule, blocks)
}
