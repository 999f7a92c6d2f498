package main

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers"
)

var (
	//go:embed layouts/*.sql
	layouts embed.FS
	//go:embed spans.sql
	generate string
	//go:embed queries.sql
	queries string
	//go:embed sizes.sql
	sizes string
)

// ours are the layouts of package clickhouse.
var ours = map[string]clickhouse.Schema{
	"ours":        {Table: "spans"},
	"ours-none":   {Table: "spans", Projection: clickhouse.NoProjection},
	"ours-all":    {Table: "spans", Projection: clickhouse.AllColumns},
	"ours-newest": {Table: "spans", Version: "26.9"},
}

// statements returns the statements that create a layout's tables.
func statements(layout string) ([]string, error) {
	schema, ok := ours[layout]
	all, err := schema.Statements()
	if err != nil {
		return nil, err
	}
	files := "unmerged"
	if !ok {
		files = layout + "+" + files
		all = slices.DeleteFunc(all, func(s string) bool {
			return !strings.Contains(s, "FUNCTION")
		})
	}
	for name := range strings.SplitSeq(files, "+") {
		text, err := layouts.ReadFile("layouts/" + name + ".sql")
		if err != nil {
			return nil, err
		}
		all = append(all, strings.Split(strings.TrimRight(string(text), ";\n"), ";\n")...)
	}
	return all, nil
}

// measure loads a table in a server of its own, and measures it.
func measure(ctx context.Context, t table) (f figure, err error) {
	e, err := servers.ClickHouse(ctx)
	if err != nil {
		return f, err
	}
	defer func() { _ = e.Close() }()
	all, err := statements(t.Layout)
	if err != nil {
		return f, err
	}
	if err := e.Exec(ctx, all...); err != nil {
		return f, err
	}
	f.table = t
	seconds, err := load(ctx, e, t)
	if t.Mode == "cpu" || err != nil {
		f.CPU = []float64{seconds / float64(t.spans()) * 1e6}
		return f, err
	}
	f.Values, err = values(ctx, e, t)
	return f, err
}

// load stores the spans in blocks of 100,000, as a busy Collector does, merges them, and returns
// the seconds of CPU time that the server took for it since the last step began.
func load(ctx context.Context, e *servers.Engine, t table) (float64, error) {
	columns := "Timestamp, TraceId, SpanId, SpanName, ServiceName, Duration"
	if t.Mode != "age" {
		columns += ", ParentSpanId, SpanKind, ResourceAttributes, SpanAttributes, StatusCode, " +
			"StatusMessage, `Events.Timestamp`, `Events.Name`, `Events.Attributes`"
	}
	var before float64
	for from := 0; from < t.spans(); from += step {
		source := strings.NewReplacer("{services}", fmt.Sprint(t.Services),
			"{random}", fmt.Sprint(t.Random), "{us}", fmt.Sprint(864000/t.Rate), "{from}",
			fmt.Sprint(from), "{count}", fmt.Sprint(min(step, t.spans()-from))).Replace(generate)
		err := e.Exec(ctx, "DROP TABLE IF EXISTS source", "CREATE TABLE source ENGINE = Memory "+
			"AS SELECT "+columns+" FROM ("+source+")")
		if err != nil {
			return 0, err
		}
		if before, err = cpu(ctx, e); err != nil {
			return 0, err
		}
		if err := e.Exec(ctx, "INSERT INTO spans ("+columns+") SELECT "+columns+" FROM source "+
			"SETTINGS max_threads = 1, max_insert_threads = 1, max_insert_block_size = 100000, "+
			"min_insert_block_size_rows = 100000, min_insert_block_size_bytes = 0"); err != nil {
			return 0, err
		}
	}
	last := []string{"DROP TABLE source"}
	if t.Mode != "unmerged" {
		last = append(last, "OPTIMIZE TABLE spans FINAL", "OPTIMIZE TABLE spans_trace_id_ts FINAL")
	}
	if err := e.Exec(ctx, last...); err != nil {
		return 0, err
	}
	after, err := cpu(ctx, e)
	return after - before, err
}

// cpu returns the seconds of CPU time that ClickHouse has used, on Linux.
func cpu(ctx context.Context, e *servers.Engine) (seconds float64, err error) {
	r, err := e.Query(ctx, "SELECT (toUInt64(f[12]) + toUInt64(f[13])) / 100 FROM (SELECT "+
		"splitByChar(' ', splitByString(') ', line)[-1]) AS f "+
		"FROM file('/proc/self/stat', LineAsString))")
	if err == nil {
		_, err = fmt.Sscan(r.Rows[0][0], &seconds)
	}
	return seconds, err
}

// step is how many spans are generated at a time. No table whose CPU time counts has more.
const step = 2_000_000

// spans returns how many spans the table has.
func (t table) spans() int { return int(t.Rate * 1e6 / 24 * t.Hours) }

// values measures the size of a table and what the queries read.
func values(ctx context.Context, e *servers.Engine, t table) (all []value, err error) {
	// The first granule of each part takes the marks of all columns to memory.
	if err := e.Exec(ctx, "SYSTEM DROP MARK CACHE", "SELECT sum(cityHash64(*)) FROM spans "+
		"WHERE _part_offset = 0 SETTINGS optimize_use_projections = 0"); err != nil {
		return nil, err
	}
	r, err := e.Query(ctx, sizes)
	for _, row := range r.Rows {
		v := value{Name: row[0]}
		_, err = fmt.Sscan(row[1], &v.N)
		all = append(all, v)
	}
	if err != nil {
		return nil, err
	}
	trace, err := ours["ours"].Trace([16]byte{})
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer("{hours}", fmt.Sprint(min(24, t.Hours)),
		"{ours}", strings.ReplaceAll(trace.SQL, "{ids:Array(String)}", "['{ordered}']"),
	).Replace(queries)
	places := map[string][]string{}
	for question := range strings.SplitSeq(text, "\n\n-- ") {
		name, query, _ := strings.Cut(question, "\n")
		name, query = strings.TrimPrefix(name, "-- "), strings.TrimRight(query, ";\n")
		if place, ok := strings.CutPrefix(name, "IDs: "); ok {
			r, err := e.Query(ctx, query)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			for _, row := range r.Rows {
				places["{"+place+"}"] = append(places["{"+place+"}"], row[0])
			}
			continue
		}
		v, asked, err := ask(ctx, e, query, places)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if v.Name = name; t.Mode != "age" || asked > 1 {
			all = append(all, v)
		}
	}
	return all, nil
}

// ask measures a query. A query with the ID of one trace is asked for several, for the mean.
func ask(ctx context.Context, e *servers.Engine, query string, places map[string][]string) (
	v value, times int, err error) {
	times = 1
	for place, ids := range places {
		if strings.Contains(query, place) {
			times = len(ids)
		}
	}
	for i := range times {
		one := query
		for place, ids := range places {
			one = strings.ReplaceAll(one, place, ids[min(i, len(ids)-1)])
		}
		r, err := e.Reads(ctx, "SELECT count(), sum(cityHash64(*)) FROM ("+one+")")
		if err != nil {
			return v, 0, err
		}
		v.N += float64(r.Read.Disk) / 1e6 / float64(times)
		v.Rows += float64(r.Read.Rows) / 1e3 / float64(times)
		v.Answer += strings.Join(r.Rows[0], ":") + " "
	}
	return v, times, nil
}
