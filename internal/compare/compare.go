// Package compare asks the same questions of tables with the same spans, and counts what ClickHouse
// reads for each.
package compare

import (
	"context"
	"database/sql"
	_ "embed" // the questions and the page
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
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
	N            float64 // megabytes that are stored, or were read from files
	Rows         float64 // thousands that were read
	Milliseconds float64 // 0 with cold caches, where it says more about the disk
	Answer       string  // number of rows and a hash of them; "" for a size
}

// Period is the time of the spans that are compared.
type Period struct{ From, To time.Time }

// Measure adds the sizes of a table and what the questions read. With cold, the server's caches are
// emptied before each question.
func (t *Table) Measure(ctx context.Context, db *sql.DB, p Period, cold bool) error {
	// The beginning of a bucket after two thirds of the period.
	at := p.From.Add(p.To.Sub(p.From) * 2 / 3).Truncate(5 * time.Minute)
	all := strings.NewReplacer("{all}", between(p.From, p.To), "{hours}",
		fmt.Sprint(p.To.Sub(p.From).Hours()), "{to}", literal(p.To), "{at}", literal(at),
		"{five_minutes}", between(at, at.Add(5*time.Minute)), "{spans}", t.quoted(t.Name),
		"{lookup}", t.quoted(t.Lookup), "{database_name}", text(t.Database), "{spans_name}",
		text(t.Name), "{lookup_name}", text(t.Lookup)).Replace(questions)
	for {
		var question string
		var err error
		_, all, _ = strings.Cut(all, "\n\n-- ")
		if question, _, _ = strings.Cut(all, ";\n"); question == "" {
			return nil
		}
		name, query, _ := strings.Cut(question, "\n")
		size, ok := strings.CutPrefix(name, "size: ")
		if ok {
			v := Value{Name: size}
			err = db.QueryRowContext(ctx, query).Scan(&v.N)
			t.Values = append(t.Values, v)
		} else if place, ok := strings.CutPrefix(name, "place: "); ok {
			var value string
			err = db.QueryRowContext(ctx, query).Scan(&value)
			if value != "" {
				all = strings.ReplaceAll(all, "{"+place+"}", value)
			}
			if errors.Is(err, sql.ErrNoRows) { // such as attributes: nothing is asked about them
				err = nil
			}
		} else if !strings.Contains(query, "{") && t.Value(name).Name == "" {
			err = t.ask(ctx, db, name, query, cold)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

func (t *Table) quoted(name string) string {
	return quote(t.Database, "`") + "." + quote(name, "`")
}

func text(s string) string { return quote(s, "'") }

func quote(s, mark string) string {
	return mark + strings.NewReplacer("\\", "\\\\", mark, "\\"+mark).Replace(s) + mark
}

func literal(t time.Time) string {
	return "toDateTime64('" + t.UTC().Format(time.DateTime) + "', 9, 'UTC')"
}

// between returns the condition for spans of a period.
func between(from, to time.Time) string {
	return "Timestamp >= " + literal(from) + " AND Timestamp < " + literal(to)
}

// counted answers a question and counts what ClickHouse read for it. The question is a scalar
// subquery, which runs before the row of system.processes for the whole query is read.
const counted = `WITH (SELECT (count(), sum(cityHash64(*))) FROM (%s)) AS answer
SELECT toString(answer), read_rows / 1e3, elapsed * 1e3, (
    ProfileEvents['ReadBufferFromFileDescriptorReadBytes'] + ProfileEvents['ReadBufferFromS3Bytes']
) / 1e6
FROM system.processes WHERE query_id = queryID() SETTINGS use_query_condition_cache = 0`

// caches of a server, besides that of conditions.
var caches = [...]string{"MARK", "UNCOMPRESSED", "INDEX MARK", "INDEX UNCOMPRESSED"}

// ask adds the value of a question.
func (t *Table) ask(ctx context.Context, db *sql.DB, name, query string, cold bool) error {
	if cold {
		for _, cache := range caches {
			if _, err := db.ExecContext(ctx, "SYSTEM DROP "+cache+" CACHE"); err != nil {
				return err
			}
		}
	}
	name, number := strings.CutSuffix(name, " (count)")
	v := Value{Name: name}
	err := db.QueryRowContext(ctx, fmt.Sprintf(counted, query)).Scan(&v.Answer, &v.Rows,
		&v.Milliseconds, &v.N)
	if number {
		v.Answer, _, _ = strings.Cut(v.Answer, ",")
	}
	if cold {
		v.Milliseconds = 0
	}
	t.Values = append(t.Values, v)
	return err
}

// Value returns the value with a name, or the zero value.
func (t Table) Value(name string) Value {
	i := slices.IndexFunc(t.Values, func(v Value) bool { return v.Name == name })
	if i < 0 {
		return Value{}
	}
	return t.Values[i]
}

// Differs returns an error if a question has another answer in the second table.
func Differs(one, two Table) error {
	for _, v := range one.Values {
		if other := two.Value(v.Name).Answer; other != v.Answer {
			return fmt.Errorf("%s: the answer is %s in %s and %s in %s", v.Name, v.Answer,
				one.Title, other, two.Title)
		}
	}
	return nil
}

//go:embed table.md.tmpl
var markdown string

// Share returns what part of another value a value is.
func (v Value) Share(of Value) float64 { return v.N / of.N }

// Write writes the values as a table in Markdown, with each one's share of that in the first table.
func Write(w io.Writer, tables []Table) error {
	out := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	err := template.Must(template.New("").Parse(markdown)).Execute(out, tables)
	return errors.Join(err, out.Flush())
}
