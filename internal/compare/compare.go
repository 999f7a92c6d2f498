// Package compare asks the same questions of tables with the same spans, and counts what ClickHouse
// reads for each.
package compare

import (
	"context"
	"database/sql"
	_ "embed" // the questions
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

//go:embed questions.sql
var questions string

// Table is a table of spans.
type Table struct {
	Title    string // heads its column
	Database string
	Name     string
	Lookup   string // name of its lookup table

	Values []Value // what was measured
}

// Value is a size, or what a question read.
type Value struct {
	Name         string
	Megabytes    float64 // that are stored, or were read from files
	Rows         float64 // thousands that were read
	Milliseconds float64
	Answer       string // number of rows and a hash of them; "" for a size
}

// Period is the time of the spans that are compared, in whole hours. Its length decides the
// questions about all of it.
type Period struct{ From, To time.Time }

// at returns the time for questions about some minutes: the beginning of a bucket after two thirds
// of the period.
func (p Period) at() time.Time {
	return p.From.Add(p.To.Sub(p.From) * 2 / 3).Truncate(5 * time.Minute)
}

// Measure fills in the values of a table. It asks the questions in turn, with the caches of the
// server emptied before each if they are to be cold.
func (t *Table) Measure(ctx context.Context, db *sql.DB, p Period, cold bool) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := t.sizes(ctx, conn); err != nil {
		return err
	}
	text := strings.NewReplacer("{all}", between(p.From, p.To), "{hours}",
		fmt.Sprint(p.To.Sub(p.From).Hours()), "{to}", literal(p.To), "{at}", literal(p.at()),
		"{five_minutes}", between(p.at(), p.at().Add(5*time.Minute)),
		"{spans}", t.quoted(t.Name), "{lookup}", t.quoted(t.Lookup)).Replace(questions)
	places := map[string][]string{}
	for _, question := range strings.Split(text, "\n\n-- ")[1:] {
		name, query, _ := strings.Cut(question, "\n")
		query = strings.TrimRight(query, ";\n")
		kind, place, _ := strings.Cut(name, ": ")
		switch kind {
		case "place", "list":
			err = fill(ctx, conn, places, kind == "list", "{"+place+"}", query)
		default:
			err = t.ask(ctx, conn, name, variants(query, places), cold)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (t *Table) quoted(name string) string { return quote(t.Database) + "." + quote(name) }

// quote returns a name as an identifier of SQL.
func quote(name string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}

// text returns a text as a literal of SQL.
func text(s string) string {
	return "'" + strings.NewReplacer("\\", "\\\\", "'", "\\'").Replace(s) + "'"
}

func literal(t time.Time) string {
	return "toDateTime64('" + t.UTC().Format("2006-01-02 15:04:05") + "', 9, 'UTC')"
}

// between returns the condition for spans of a period.
func between(from, to time.Time) string {
	return "Timestamp >= " + literal(from) + " AND Timestamp < " + literal(to)
}

// fill adds the values of a place: the rows of a query, or a list of them.
func fill(ctx context.Context, conn *sql.Conn, places map[string][]string, list bool, place,
	query string) error {
	places[place] = nil
	for _, query := range variants(query, places) {
		all, err := column(ctx, conn, "SELECT toString(*) FROM ("+query+")")
		if err != nil {
			return err
		}
		for i, value := range all {
			all[i] = text(value)
		}
		if list && len(all) > 0 {
			all = []string{"(" + strings.Join(all, ", ") + ")"}
		}
		places[place] = append(places[place], all...)
	}
	return nil
}

// column returns the only column of a query.
func column(ctx context.Context, conn *sql.Conn, query string) (all []string, err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, rows.Err()
}

// variants returns a query for each value of its places; none if a place has no value.
func variants(query string, places map[string][]string) []string {
	all := []string{query}
	for place, values := range places {
		if !strings.Contains(query, place) || strings.Contains(query, "-- "+place) {
			continue
		}
		var more []string
		for _, query := range all {
			for _, value := range values {
				more = append(more, strings.ReplaceAll(query, place, value))
			}
		}
		all = more
	}
	slices.Sort(all)
	return all
}

// counted answers a question and counts what ClickHouse read for it. The question is a scalar
// subquery, which runs before the row of system.processes for the whole query is read.
const counted = `WITH (SELECT (count(), sum(cityHash64(*))) FROM (%s)) AS answer
SELECT toString(answer), toFloat64(read_rows), toFloat64(elapsed), toFloat64(
    ProfileEvents['ReadBufferFromFileDescriptorReadBytes'] + ProfileEvents['ReadBufferFromS3Bytes'])
FROM system.processes WHERE query_id = queryID() SETTINGS use_query_condition_cache = 0`

// caches of ClickHouse.
var caches = []string{"MARK", "UNCOMPRESSED", "INDEX MARK", "INDEX UNCOMPRESSED", "QUERY CONDITION"}

// ask adds the value of a question: the mean of its variants.
func (t *Table) ask(ctx context.Context, conn *sql.Conn, name string, queries []string,
	cold bool) error {
	v, n := Value{Name: name}, float64(len(queries))
	for _, query := range queries {
		for _, cache := range caches {
			if !cold {
				break
			}
			if _, err := conn.ExecContext(ctx, "SYSTEM DROP "+cache+" CACHE"); err != nil {
				return err
			}
		}
		var answer string
		var rows, seconds, bytes float64
		row := conn.QueryRowContext(ctx, fmt.Sprintf(counted, query))
		if err := row.Scan(&answer, &rows, &seconds, &bytes); err != nil {
			return err
		}
		if strings.HasSuffix(name, "(count)") {
			answer, _, _ = strings.Cut(answer, ",")
		}
		v.Answer += answer
		v.Rows += rows / 1e3 / n
		v.Milliseconds += seconds * 1e3 / n
		v.Megabytes += bytes / 1e6 / n
	}
	if n > 0 {
		t.Values = append(t.Values, v)
	}
	return nil
}

// sizes adds what the table takes, with its projections.
func (t *Table) sizes(ctx context.Context, conn *sql.Conn) error {
	disk, keys, lookup := Value{Name: "disk"}, Value{Name: "keys and marks"},
		Value{Name: "disk of the lookup table"}
	err := conn.QueryRowContext(ctx, `SELECT sumIf(bytes_on_disk, table = `+text(t.Name)+`) / 1e6,
		sumIf(primary_key_bytes_in_memory + marks_bytes, table = `+text(t.Name)+`) / 1e6,
		sumIf(bytes_on_disk, table = `+text(t.Lookup)+`) / 1e6
		FROM system.parts WHERE active AND database = `+text(t.Database)).
		Scan(&disk.Megabytes, &keys.Megabytes, &lookup.Megabytes)
	t.Values = append(t.Values, disk, keys, lookup)
	return err
}

// value returns the value with a name, or false.
func (t *Table) value(name string) (Value, bool) {
	i := slices.IndexFunc(t.Values, func(v Value) bool { return v.Name == name })
	if i < 0 {
		return Value{}, false
	}
	return t.Values[i], true
}

// Differs returns an error if a question has another answer in the second table.
func Differs(one, two Table) error {
	for _, v := range one.Values {
		if other, ok := two.value(v.Name); !ok || other.Answer != v.Answer {
			return fmt.Errorf("%s: the answer is %s in %s and %s in %s", v.Name, v.Answer,
				one.Title, other.Answer, two.Title)
		}
	}
	return nil
}

// Write writes the values as a table in Markdown, with each one's share of that in the first table,
// and with times if they mean something.
func Write(w io.Writer, tables []Table, times bool) error {
	out := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	heads, line := "| \t", "|---\t"
	for _, t := range tables {
		heads += "| " + t.Title + " \t"
		line += "|---\t"
	}
	fmt.Fprintln(out, heads+"|\n"+line+"|")
	for _, first := range tables[0].Values {
		fmt.Fprint(out, "| "+strings.TrimSuffix(first.Name, " (count)")+" \t")
		for i, t := range tables {
			v, ok := t.value(first.Name)
			if !ok {
				fmt.Fprint(out, "| – \t")
				continue
			}
			fmt.Fprintf(out, "| %.2f", v.Megabytes)
			if v.Answer != "" {
				fmt.Fprintf(out, " / %.0f", v.Rows)
				if times {
					fmt.Fprintf(out, " / %.0f", v.Milliseconds)
				}
			}
			if i > 0 {
				fmt.Fprintf(out, " (%.3f)", v.Megabytes/first.Megabytes)
			}
			fmt.Fprint(out, " \t")
		}
		fmt.Fprintln(out, "|")
	}
	return out.Flush()
}
