package spans

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Successive spans of one resource and scope share them. The names of kinds and codes in old rows
// are understood, and a service that is only in its column is in the resource.
func TestBatch(t *testing.T) {
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	host := map[string]string{"host": "a"}
	var b batch
	for _, r := range []spanRow{
		{ServiceName: "shop", ScopeName: "http", ResourceAttributes: host},
		{ServiceName: "shop", ScopeName: "http", ResourceAttributes: host, TraceID: id,
			SpanID: span, ParentSpanID: "none", SpanKind: "SPAN_KIND_SERVER",
			StatusCode: "STATUS_CODE_ERROR"},
		{ServiceName: "shop", ScopeName: "sql", ResourceAttributes: host, SpanKind: "Client",
			StatusCode: "Ok"},
		{ServiceName: "shop", ScopeName: "sql"},
		{ServiceName: "cart", ScopeName: "sql"},
	} {
		b.add(r)
	}
	resources := b.td.ResourceSpans()
	if b.rows != 5 || b.td.SpanCount() != 5 || resources.Len() != 4 {
		t.Fatalf("%d rows became %d spans in %d resources", b.rows, b.td.SpanCount(),
			resources.Len())
	}
	for i, want := range []string{"shop", "shop", "shop", "cart"} {
		if v, _ := resources.At(i).Resource().Attributes().Get("service.name"); v.Str() != want {
			t.Errorf("resource %d is of %s, want %s", i, v.Str(), want)
		}
	}
	second := resources.At(0).ScopeSpans().At(0).Spans().At(1)
	if second.TraceID().String() != id || second.SpanID().String() != span ||
		!second.ParentSpanID().IsEmpty() || second.Kind() != ptrace.SpanKindServer ||
		second.Status().Code() != ptrace.StatusCodeError {
		t.Errorf("the second row became %s of %s, %s, %s", second.SpanID(), second.TraceID(),
			second.Kind(), second.Status().Code())
	}
	third := resources.At(1).ScopeSpans().At(0).Spans().At(0)
	if third.Kind() != ptrace.SpanKindClient || third.Status().Code() != ptrace.StatusCodeOk {
		t.Errorf("the third row became %s, %s", third.Kind(), third.Status().Code())
	}
}
