package waterfall

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

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
