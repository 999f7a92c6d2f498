package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	traces "github.com/traceflake/traceflake/clickhouse"
)

// period is a choice of the search form.
type period struct {
	Name     string // in the URL
	Label    string
	duration time.Duration
}

const day = 24 * time.Hour

var periods = []period{
	{"5m", "5 minutes", 5 * time.Minute}, {"1h", "hour", time.Hour}, {"24h", "24 hours", day},
	{"7d", "7 days", 7 * day}, {"30d", "30 days", 30 * day},
}

// searchForm holds the user's input, so that the form can show it again.
type searchForm struct {
	Service, Name, Shortest, Within string
	Errors                          bool
	Services                        []string // suggestions
	Periods                         []period
}

// newSearchForm returns a form with the input of a URL's query, and suggestions.
func (p *page) newSearchForm(ctx context.Context, q url.Values) (searchForm, error) {
	form := searchForm{
		Service: strings.TrimSpace(q.Get("service")), Name: strings.TrimSpace(q.Get("name")),
		Shortest: strings.TrimSpace(q.Get("shortest")), Within: cmp.Or(q.Get("within"), "24h"), Errors: q.Get("errors") != "",
		Periods: periods,
	}
	var rows []struct{ ServiceName string }
	err := p.find.conn.Select(ctx, &rows, "SELECT DISTINCT ServiceName FROM otel_traces ORDER BY ServiceName LIMIT 200")
	for _, row := range rows {
		form.Services = append(form.Services, row.ServiceName)
	}
	return form, err
}

// search returns what the form asks for. A link to an older page sets the range with the fields
// since and before of the query.
func (form searchForm) search(q url.Values, now time.Time) (traces.Search, error) {
	search := traces.Search{Service: form.Service, Name: form.Name, Errors: form.Errors, Limit: perPage}
	if form.Shortest != "" {
		ms, err := strconv.ParseFloat(form.Shortest, 64)
		if err != nil || math.IsNaN(ms) || ms < 0 || ms > 1e9 {
			return search, badInput("The shortest duration %q is invalid: give milliseconds from 0 to 1000000000, such as 12.5.", form.Shortest)
		}
		search.MinDuration = time.Duration(ms * float64(time.Millisecond))
	}
	i := slices.IndexFunc(periods, func(p period) bool { return p.Name == form.Within })
	if i < 0 {
		return search, badInput("The period %q is invalid: choose 5m, 1h, 24h, 7d or 30d.", form.Within)
	}
	search.From, search.To = now.Add(-periods[i].duration), now.Add(time.Minute) // other clocks may be ahead
	for name, at := range map[string]*time.Time{"since": &search.From, "before": &search.To} {
		if text := q.Get(name); text != "" {
			parsed, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				return search, badInput("The time %s=%q is invalid: give it as 2026-01-02T15:04:05Z.", name, text)
			}
			*at = parsed
		}
	}
	return search, nil
}

type searchView struct {
	Form    searchForm
	Matches []span
	Further bool   // not the first page
	Older   string // the URL of the next page
}

// search lists the newest spans that match.
func (p *page) search(r *http.Request) (string, any, error) {
	ctx, q := r.Context(), r.URL.Query()
	form, err := p.newSearchForm(ctx, q)
	if err != nil {
		return "", nil, err
	}
	search, err := form.search(q, time.Now())
	if err != nil {
		return "", nil, err
	}
	query, err := table.Search(search)
	if err != nil {
		return "", nil, badInput("%v", err)
	}
	v := searchView{Form: form, Further: q.Get("before") != ""}
	if err := p.find.conn.Select(ctx, &v.Matches, query.SQL, arguments(query)...); err != nil {
		return "", nil, fmt.Errorf("search: %w", err)
	}
	if n := len(v.Matches); n >= search.Limit {
		q.Set("since", search.From.UTC().Format(time.RFC3339Nano))
		q.Set("before", v.Matches[n-1].Timestamp.UTC().Format(time.RFC3339Nano))
		v.Older = "/search?" + q.Encode()
	}
	return "Search", v, nil
}
