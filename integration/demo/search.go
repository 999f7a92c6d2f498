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

	"go.opentelemetry.io/otel/trace"

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

func newSearchForm(services []string) searchForm {
	return searchForm{Within: "24h", Services: services, Periods: periods}
}

// parseSearch parses the query of a URL. Its errors are sentences for the page. A link to an older
// page sets the range with the fields since and before.
func parseSearch(q url.Values, services []string, now time.Time) (searchForm, traces.Search, error) {
	form := newSearchForm(services)
	form.Service, form.Name = strings.TrimSpace(q.Get("service")), strings.TrimSpace(q.Get("name"))
	form.Shortest, form.Errors = strings.TrimSpace(q.Get("shortest")), q.Get("errors") != ""
	form.Within = cmp.Or(q.Get("within"), form.Within)
	search := traces.Search{Service: form.Service, Name: form.Name, Errors: form.Errors, Limit: perPage}
	if form.Shortest != "" {
		ms, err := strconv.ParseFloat(form.Shortest, 64)
		if err != nil || math.IsNaN(ms) || ms < 0 || ms > 1e9 {
			return form, search, fmt.Errorf("The shortest duration %q is invalid: give milliseconds from 0 to 1000000000, such as 12.5.", form.Shortest) //nolint:staticcheck,revive // a sentence on a page
		}
		search.MinDuration = time.Duration(ms * float64(time.Millisecond))
	}
	i := slices.IndexFunc(periods, func(p period) bool { return p.Name == form.Within })
	if i < 0 {
		return form, search, fmt.Errorf("The period %q is invalid: choose 5m, 1h, 24h, 7d or 30d.", form.Within) //nolint:staticcheck,revive // a sentence on a page
	}
	search.From, search.To = now.Add(-periods[i].duration), now.Add(time.Minute) // other clocks may be ahead
	for name, at := range map[string]*time.Time{"since": &search.From, "before": &search.To} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		parsed, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return form, search, fmt.Errorf("The time %s=%q is invalid: give it as 2026-01-02T15:04:05Z.", name, text) //nolint:staticcheck,revive // a sentence on a page
		}
		*at = parsed
	}
	return form, search, nil
}

// match is a span that a search returned.
type match struct {
	Timestamp                                   time.Time
	TraceID                                     string `ch:"TraceId"`
	ServiceName, SpanName, SpanKind, StatusCode string
	Duration                                    uint64 // nanoseconds
}

func (f *finder) search(ctx context.Context, query traces.Query) (found []match, err error) {
	return found, f.conn.Select(ctx, &found, query.SQL, arguments(query)...)
}

// services returns suggestions for the search form.
func (f *finder) services(ctx context.Context) ([]string, error) {
	var rows []struct{ ServiceName string }
	err := f.conn.Select(ctx, &rows, "SELECT DISTINCT ServiceName FROM otel_traces ORDER BY ServiceName LIMIT 200")
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.ServiceName
	}
	return names, err
}

type searchView struct {
	head
	Form    searchForm
	Matches []matchRow
	Further bool   // not the first page
	Older   string // the URL of the next page
}

type matchRow struct {
	At            time.Time
	TraceID       string // "" if it cannot be opened
	Service, Name string
	Colour        int
	Duration      string
	Error         bool
}

func newSearchView(form searchForm, search traces.Search, found []match, q url.Values, lost error) searchView {
	v := searchView{head: newHead("Search", lost), Form: form, Further: q.Get("before") != ""}
	var services []string
	for _, m := range found {
		services = append(services, m.ServiceName)
	}
	colours := colour(services)
	for _, m := range found {
		row := matchRow{At: m.Timestamp.UTC(), Service: m.ServiceName, Name: m.SpanName, Colour: colours[m.ServiceName],
			Duration: milliseconds(time.Duration(m.Duration)), Error: isError(m.StatusCode)}
		if _, err := trace.TraceIDFromHex(m.TraceID); err == nil {
			row.TraceID = m.TraceID
		}
		v.Matches = append(v.Matches, row)
	}
	if len(found) >= search.Limit {
		q.Set("since", search.From.UTC().Format(time.RFC3339Nano))
		q.Set("before", found[len(found)-1].Timestamp.UTC().Format(time.RFC3339Nano))
		v.Older = "/search?" + q.Encode()
	}
	return v
}

// search lists the newest spans that match.
func (p *page) search(w http.ResponseWriter, r *http.Request) {
	lost := p.spans.flush(r.Context())
	services, err := p.find.services(r.Context())
	if err != nil {
		p.fail(w, http.StatusBadGateway, err.Error())
		return
	}
	form, search, err := parseSearch(r.URL.Query(), services, time.Now())
	if err != nil {
		p.fail(w, http.StatusBadRequest, err.Error())
		return
	}
	query, err := table.Search(search)
	if err != nil {
		p.fail(w, http.StatusBadRequest, err.Error())
		return
	}
	found, err := p.find.search(r.Context(), query)
	if err != nil {
		p.fail(w, http.StatusBadGateway, err.Error())
		return
	}
	p.show(w, http.StatusOK, "search.html", newSearchView(form, search, found, r.URL.Query(), lost))
}
