package spans

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

// part is how many spans or log records of ClickHouse are passed on at once.
const part = 1000

// ClickHouse is a [Source] on the exporter's tables.
type ClickHouse struct {
	DB     *sql.DB
	Schema clickhouse.Schema
}

func (c ClickHouse) String() string {
	return "ClickHouse's table " + cmp.Or(c.Schema.Table, "otel_traces")
}

// spanRow is a row of the exporter's table of spans. A tag is the column of a field with another
// name.
type spanRow struct {
	Timestamp                                          time.Time
	TraceID                                            string `ch:"TraceId"`
	SpanID                                             string `ch:"SpanId"`
	ParentSpanID                                       string `ch:"ParentSpanId"`
	TraceState, SpanName, SpanKind, ServiceName        string
	ScopeName, ScopeVersion, StatusCode, StatusMessage string
	ResourceAttributes, SpanAttributes                 map[string]string
	Duration                                           uint64
	EventsTimestamp                                    []time.Time         `ch:"Events.Timestamp"`
	EventsName                                         []string            `ch:"Events.Name"`
	EventsAttributes                                   []map[string]string `ch:"Events.Attributes"`
	LinksTraceID                                       []string            `ch:"Links.TraceId"`
	LinksSpanID                                        []string            `ch:"Links.SpanId"`
	LinksTraceState                                    []string            `ch:"Links.TraceState"`
	LinksAttributes                                    []map[string]string `ch:"Links.Attributes"`
}

// columns returns, for each column, the pointer to its field in a row.
func columns(row any) map[string]any {
	into := make(map[string]any)
	for field, value := range reflect.ValueOf(row).Elem().Fields() {
		into[cmp.Or(field.Tag.Get("ch"), field.Name)] = value.Addr().Interface()
	}
	return into
}

// Trace implements [Source] with one query.
func (c ClickHouse) Trace(
	ctx context.Context, id trace.TraceID, each func(ptrace.Traces) error,
) error {
	q, err := c.Schema.Trace(id)
	if err != nil {
		return err
	}
	var row spanRow
	var b batch
	err = c.rows(ctx, q, columns(&row), func() error {
		if b.add(row); b.rows < part {
			return nil
		}
		full := b.td
		b = batch{}
		return each(full)
	})
	if err == nil && b.rows > 0 {
		err = each(b.td)
	}
	return err
}

// rows runs a query and calls each after every row that was scanned into the columns.
func (c ClickHouse) rows(
	ctx context.Context, q clickhouse.Query, columns map[string]any, each func() error,
) error {
	rows, err := c.DB.QueryContext(ctx, q.SQL, q.Args()...)
	if err != nil {
		return fmt.Errorf("ClickHouse: %w", err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return fmt.Errorf("ClickHouse: %w", err)
	}
	into := make([]any, len(names))
	for i, name := range names {
		if into[i] = columns[name]; into[i] == nil {
			into[i] = new(any)
		}
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("ClickHouse: %w", err)
		}
		if err := each(); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("ClickHouse: %w", err)
	}
	return nil
}

// batch collects rows of spans. Successive spans of a resource and scope share them.
type batch struct {
	td   ptrace.Traces
	rows int
	of   string           // the resource and scope of the last row
	to   ptrace.SpanSlice // of that scope
}

func (b *batch) add(r spanRow) {
	if b.rows == 0 {
		b.td = ptrace.NewTraces()
	}
	b.rows++
	of := fmt.Sprintf("%q", []any{r.ServiceName, r.ScopeName, r.ScopeVersion, r.ResourceAttributes})
	if of != b.of {
		b.of = of
		resource := b.td.ResourceSpans().AppendEmpty()
		put(resource.Resource().Attributes(), r.ResourceAttributes)
		if _, ok := r.ResourceAttributes[serviceName]; !ok && r.ServiceName != "" {
			resource.Resource().Attributes().PutStr(serviceName, r.ServiceName)
		}
		scope := resource.ScopeSpans().AppendEmpty()
		scope.Scope().SetName(r.ScopeName)
		scope.Scope().SetVersion(r.ScopeVersion)
		b.to = scope.Spans()
	}
	r.copyTo(b.to.AppendEmpty())
}

const serviceName = "service.name"

func (r *spanRow) copyTo(s ptrace.Span) {
	s.SetTraceID(traceID(r.TraceID))
	s.SetSpanID(spanID(r.SpanID))
	s.SetParentSpanID(spanID(r.ParentSpanID))
	s.TraceState().FromRaw(r.TraceState)
	s.SetName(r.SpanName)
	s.SetKind(kindOf(r.SpanKind))
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(r.Timestamp))
	s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(r.Duration))
	put(s.Attributes(), r.SpanAttributes)
	s.Status().SetCode(statusOf(r.StatusCode))
	s.Status().SetMessage(r.StatusMessage)
	for i, at := range r.EventsTimestamp {
		e := s.Events().AppendEmpty()
		e.SetTimestamp(pcommon.NewTimestampFromTime(at))
		e.SetName(r.EventsName[i])
		put(e.Attributes(), r.EventsAttributes[i])
	}
	for i, id := range r.LinksTraceID {
		l := s.Links().AppendEmpty()
		l.SetTraceID(traceID(id))
		l.SetSpanID(spanID(r.LinksSpanID[i]))
		l.TraceState().FromRaw(r.LinksTraceState[i])
		put(l.Attributes(), r.LinksAttributes[i])
	}
}

// traceID returns the ID in hex digits, or zeros if they are none.
func traceID(digits string) pcommon.TraceID {
	id, _ := trace.TraceIDFromHex(digits)
	return pcommon.TraceID(id)
}

// spanID is traceID for span IDs.
func spanID(digits string) pcommon.SpanID {
	id, _ := trace.SpanIDFromHex(digits)
	return pcommon.SpanID(id)
}

// kindOf reads the exporter's names for kinds: Server, and SPAN_KIND_SERVER of older versions.
func kindOf(name string) ptrace.SpanKind {
	name = strings.ToLower(strings.TrimPrefix(name, "SPAN_KIND_"))
	for kind := ptrace.SpanKindUnspecified; kind <= ptrace.SpanKindConsumer; kind++ {
		if strings.ToLower(kind.String()) == name {
			return kind
		}
	}
	return ptrace.SpanKindUnspecified
}

// statusOf reads the exporter's names for codes: Error, and STATUS_CODE_ERROR of older versions.
func statusOf(name string) ptrace.StatusCode {
	switch strings.ToUpper(strings.TrimPrefix(name, "STATUS_CODE_")) {
	case "ERROR":
		return ptrace.StatusCodeError
	case "OK":
		return ptrace.StatusCodeOk
	}
	return ptrace.StatusCodeUnset
}

// put adds attributes in the order of their keys.
func put(m pcommon.Map, attributes map[string]string) {
	m.EnsureCapacity(len(attributes))
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		m.PutStr(key, attributes[key])
	}
}

// logRow is a row of the exporter's table of logs.
type logRow struct {
	Timestamp                                          time.Time
	TraceID                                            string `ch:"TraceId"`
	SpanID                                             string `ch:"SpanId"`
	SeverityText, ServiceName, Body                    string
	TraceFlags, SeverityNumber                         uint8
	ResourceSchemaURL                                  string `ch:"ResourceSchemaUrl"`
	ScopeSchemaURL                                     string `ch:"ScopeSchemaUrl"`
	ScopeName, ScopeVersion                            string
	ResourceAttributes, ScopeAttributes, LogAttributes map[string]string
}

// Logs implements [Source] with one query.
func (c ClickHouse) Logs(
	ctx context.Context, id trace.TraceID, each func(plog.Logs) error,
) error {
	q, err := clickhouse.Logs(c.Schema, [][16]byte{id})
	if err != nil {
		return err
	}
	var row logRow
	return c.rows(ctx, q, columns(&row), func() error {
		logs := plog.NewLogs()
		row.addTo(logs)
		return each(logs)
	})
}

func (r *logRow) addTo(logs plog.Logs) {
	resource := logs.ResourceLogs().AppendEmpty()
	resource.SetSchemaUrl(r.ResourceSchemaURL)
	put(resource.Resource().Attributes(), r.ResourceAttributes)
	scope := resource.ScopeLogs().AppendEmpty()
	scope.SetSchemaUrl(r.ScopeSchemaURL)
	scope.Scope().SetName(r.ScopeName)
	scope.Scope().SetVersion(r.ScopeVersion)
	put(scope.Scope().Attributes(), r.ScopeAttributes)
	l := scope.LogRecords().AppendEmpty()
	l.SetTimestamp(pcommon.NewTimestampFromTime(r.Timestamp))
	l.SetTraceID(traceID(r.TraceID))
	l.SetSpanID(spanID(r.SpanID))
	l.SetFlags(plog.LogRecordFlags(r.TraceFlags))
	l.SetSeverityText(r.SeverityText)
	l.SetSeverityNumber(plog.SeverityNumber(r.SeverityNumber))
	l.Body().SetStr(r.Body)
	put(l.Attributes(), r.LogAttributes)
}
