package ddl

import (
	"fmt"
	"strings"
)

// projection is a second order of some columns.
type projection struct {
	name     string
	columns  []string
	order    []string
	granules int // rows of a granule; 0 is the table's
}

// search serves lists of spans, counts and rates by service and name.
var search = projection{
	name:    "search",
	columns: []string{"TraceId", "SpanKind", "Duration", "StatusCode", "StatusMessage"},
	order:   []string{"ServiceName", "SpanName", "Timestamp"},
}

func (p projection) sql() string {
	var settings string
	if p.granules > 0 {
		settings = fmt.Sprintf(" WITH SETTINGS (index_granularity = %d)", p.granules)
	}
	return fmt.Sprintf("    PROJECTION %s (\n        SELECT %s\n        ORDER BY %s\n    )%s",
		p.name, strings.Join(p.columns, ", "), strings.Join(p.order, ", "), settings)
}

// isThere is a condition on a table's row in system.tables: it has the
// projection with these columns, or more, in this order.
func (p projection) isThere() string {
	names := make([]string, len(p.columns))
	for i, name := range p.columns {
		names[i] = QuoteText(name)
	}
	pattern := `PROJECTION ` + p.name + ` \(SELECT ([^()]+) ORDER BY \(?` + strings.Join(p.order, ", ") + `[,)]`
	return fmt.Sprintf("hasAll(splitByString(', ', extract(create_table_query, %s)), [%s])",
		QuoteText(pattern), strings.Join(names, ", "))
}

// Sizes of granules. A trace is some tens of spans: the smaller the granule,
// the fewer other spans are read; below these sizes storing costs more than it saves.
const (
	plainGranule  = 8192
	fineGranule   = 1024
	searchGranule = 512
)

// valueSpans is how many spans one filter on the values of attributes covers: a
// search for a value reads so many for each trace that has it.
const valueSpans = 2048

// projection is that of the table. It has no condition: a block of which no span
// meets it would have no such projection, and ClickHouse merges no parts whose
// projections differ.
func (t Table) projection() projection {
	p := search
	if !t.Plain {
		p.granules = searchGranule
	}
	return p
}

// columns are the columns, indexes and projections of the table.
func (t Table) columns() string {
	granule, large := fineGranule, largeBlocks
	if t.Plain {
		granule, large = plainGranule, ""
	}
	text := strings.NewReplacer("{blooms}", fmt.Sprint(plainGranule/granule),
		"{values}", fmt.Sprint(max(valueSpans/granule, 1)), "{large blocks}", large).Replace(columns)
	return strings.TrimSuffix(text, "\n") + ",\n" + t.projection().sql() + "\n"
}

// largeBlocks keep the compression of a column whose values repeat over many
// granules.
const largeBlocks = " SETTINGS (min_compress_block_size = 262144, max_compress_block_size = 1048576)"

// settings are those of the table. A lightweight DELETE drops the projection of
// the parts that it changes: rebuilt at once it would still contain deleted rows
// (ClickHouse #111791). Such parts merge only with each other until the
// projection is materialized again.
func (t Table) settings() string {
	granule, blocks := fineGranule, ", min_compress_block_size = 16384"
	if t.Plain {
		granule, blocks = plainGranule, ""
	}
	return fmt.Sprintf("index_granularity = %d%s, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)',\n"+
		"    lightweight_mutation_projection_mode = 'drop'", granule, blocks)
}
