package waterfall

import (
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Successive spans of one resource and scope share them. The names of kinds and codes in old rows
// are understood, and a service that is only in its column is in the resource.
func TestBatch(t *testing.T) {
	host := map[string]string{"host": "a"}
	var b batch
	for _, r := range []spanRow{
		{ServiceName: "shop", ScopeName: "http", ResourceAttributes: host, SpanKind: "Client",
			StatusCode: "Ok"},
		{ServiceName: "shop", ScopeName: "http", ResourceAttributes: host,
			TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7",
			ParentSpanID: "none", SpanKind: "SPAN_KIND_SERVER", StatusCode: "STATUS_CODE_ERROR"},
		{ServiceName: "shop", ScopeName: "sql", ResourceAttributes: host},
		{ServiceName: "cart", ScopeName: "sql"},
	} {
		r.Timestamp, r.Duration = time.Unix(0, 7), 2
		b.add(r)
	}
	var m ptrace.JSONMarshaler
	got, err := m.MarshalTraces(b.td)
	const want = `{"resourceSpans":[
{"resource":{"attributes":[{"key":"host","value":{"stringValue":"a"}},
{"key":"service.name","value":{"stringValue":"shop"}}]},
"scopeSpans":[{"scope":{"name":"http"},"spans":[
{"kind":3,"startTimeUnixNano":"7","endTimeUnixNano":"9","status":{"code":1}},
{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7",
"kind":2,"startTimeUnixNano":"7","endTimeUnixNano":"9","status":{"code":2}}]}]},
{"resource":{"attributes":[{"key":"host","value":{"stringValue":"a"}},
{"key":"service.name","value":{"stringValue":"shop"}}]},
"scopeSpans":[{"scope":{"name":"sql"},"spans":[
{"startTimeUnixNano":"7","endTimeUnixNano":"9","status":{}}]}]},
{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"cart"}}]},
"scopeSpans":[{"scope":{"name":"sql"},"spans":[
{"startTimeUnixNano":"7","endTimeUnixNano":"9","status":{}}]}]}]}`
	if err != nil || string(got) != strings.ReplaceAll(want, "\n", "") {
		t.Errorf("%v, got\n%s", err, got)
	}
}
