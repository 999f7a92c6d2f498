package main

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func TestCheckDetectsEachFault(t *testing.T) {
	id, other, unsampled := trace.TraceID{1}, trace.TraceID{2}, trace.TraceID{3}
	parent := trace.SpanID{7}
	sent := map[trace.TraceID]request{
		id:        {kind: oldApp, route: routes[0], sampled: true, parent: parent},
		unsampled: {kind: newApp, route: routes[0]},
	}
	n := routes[0].spans
	good := summary{id.String(), n, n, 2, parent.String()}
	if _, err := check(sent, []summary{good}); err != nil {
		t.Errorf("as sent: %v", err)
	}
	for want, stored := range map[string][]summary{
		id.String() + " is not stored":   {},
		other.String() + `" is stored`:   {good, {other.String(), n, n, 2, ""}},
		unsampled.String() + `" is stor`: {good, {unsampled.String(), n, n, 2, ""}},
		`trace "" is stored`:             {good, {"", n, n, 2, ""}},
		`trace "` + id.String() + `" is`: {good, good},
		"Spans:14":                       {{id.String(), n - 1, n - 1, 2, parent.String()}},
		"Distinct:14":                    {{id.String(), n, n - 1, 2, parent.String()}},
		"Services:1":                     {{id.String(), n, n, 1, parent.String()}},
		"Parent:}, want":                 {{id.String(), n, n, 2, ""}},
		"Parent:0700000000000000":        {{id.String(), n, n, 2, "0800000000000000"}},
	} {
		_, err := check(sent, stored)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
