package main

import (
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

// head is what all pages share.
type head struct {
	Title  string
	Notice string // a problem with the data, or ""
}

func newHead(title string, lost error) head {
	h := head{Title: title}
	if lost != nil {
		h.Notice = "Some spans are missing: " + lost.Error()
	}
	return h
}

type errorView struct {
	head
	Reason string
}

// perPage is the number of traces on a page of the list.
const perPage = 20

type listView struct {
	head
	Before string // the cursor of this page
	Older  string // the cursor of the next page
	Edge   string // its URL for the browser
	Routes []string
	Traces []listRow
	Form   searchForm
}

type listRow struct {
	ID            string
	Made          time.Time
	Service, Name string
	Colour        int
	Spans, Errors uint64
	Duration      string
}

func newListView(traces []listed, more bool, before trace.TraceID, form searchForm, edge string, lost error) listView {
	v := listView{head: newHead("Traces", lost), Form: form, Edge: edge}
	if before.IsValid() {
		v.Before = before.String()
	}
	for _, r := range routes {
		v.Routes = append(v.Routes, r.method+" "+r.path)
	}
	var services []string
	for _, t := range traces {
		services = append(services, t.Service)
	}
	colours := colour(services)
	for _, t := range traces {
		id, err := trace.TraceIDFromHex(t.TraceID)
		if err != nil {
			continue // not 32 digits: it cannot be opened
		}
		v.Traces = append(v.Traces, listRow{ID: t.TraceID, Made: traceid.Time(id), Service: t.Service, Name: t.Name,
			Colour: colours[t.Service], Spans: t.Spans, Errors: t.Errors, Duration: milliseconds(t.End.Sub(t.Start))})
	}
	if more {
		v.Older = traces[len(traces)-1].TraceID
	}
	return v
}

type traceView struct {
	head
	Name     string
	Total    string
	Errors   int
	Services []struct {
		Name   string
		Colour int
	}
	Spans []spanRow

	ID       string
	Made     time.Time
	Sequence uint32
	Lag      string // of the first span
	Decoded  string

	Dated    bool
	Costs    []costTable
	Measured string
}

type costTable struct {
	What string
	Rows []costRow
}

type spanRow struct {
	Name, Service    string
	Colour, Depth    int
	Duration, Begins string
	Left, Width      string // percent
	Error            string
	detail
}

func newTraceView(t found, lost error) traceView {
	rows := arrange(t.spans)
	start, total := extent(rows)
	v := traceView{
		head: newHead(rows[0].SpanName+", trace "+t.id.String(), lost), Name: rows[0].SpanName, Total: milliseconds(total),
		ID: t.id.String(), Made: traceid.Time(t.id), Sequence: traceid.Sequence(t.id), Decoded: t.decoded,
		Dated: t.dated, Measured: t.measured,
	}
	for _, c := range t.costs {
		v.Costs = append(v.Costs, costTable{c.what, c.rows()})
	}
	if v.Dated {
		v.Lag = "the first span began " + milliseconds(start.Sub(v.Made)) + " later"
	}
	var services []string
	for _, r := range rows {
		services = append(services, r.ServiceName)
	}
	colours := colour(services)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(services))) {
		v.Services = append(v.Services, struct {
			Name   string
			Colour int
		}{name, colours[name]})
	}
	percent := func(d time.Duration) float64 { return 100 * float64(d) / float64(total) }
	for _, r := range rows {
		begins := r.Timestamp.Sub(start)
		row := spanRow{Name: r.SpanName, Service: r.ServiceName, Colour: colours[r.ServiceName], Depth: min(r.depth, 8),
			Duration: milliseconds(time.Duration(r.Duration)), Begins: milliseconds(begins), detail: newDetail(r.span, start)}
		width := max(percent(time.Duration(r.Duration)), 0.4) // otherwise it would be invisible
		row.Width = fmt.Sprintf("%.2f", width)
		row.Left = fmt.Sprintf("%.2f", min(percent(begins), 100-width))
		if r.failed() {
			v.Errors++
			row.Error = "Error: " + r.StatusMessage
			if r.StatusMessage == "" {
				row.Error = "Error"
			}
		}
		v.Spans = append(v.Spans, row)
	}
	return v
}

// colour assigns each service one of the colours in style.css.
func colour(services []string) map[string]int {
	colours := make(map[string]int)
	for _, name := range slices.Sorted(slices.Values(services)) {
		if _, ok := colours[name]; !ok {
			colours[name] = len(colours) % 6
		}
	}
	return colours
}
