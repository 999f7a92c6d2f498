package spans

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

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
