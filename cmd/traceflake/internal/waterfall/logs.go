package waterfall

import (
	"cmp"
	"fmt"
	"io"

	"go.opentelemetry.io/collector/pdata/plog"
)

// DrawLogs writes a line for each log record: its time since the start of the trace, severity,
// service and body.
func (t *Trace) DrawLogs(w io.Writer, logs plog.Logs) error {
	for _, resource := range logs.ResourceLogs().All() {
		service := ""
		if v, ok := resource.Resource().Attributes().Get("service.name"); ok {
			service = Printable(v.AsString())
		}
		for _, scope := range resource.ScopeLogs().All() {
			for _, l := range scope.LogRecords().All() {
				at := between(t.start(), int64(l.Timestamp()))
				severity := cmp.Or(l.SeverityText(), l.SeverityNumber().String())
				const severityWidth, serviceWidth = 6, 12
				_, err := fmt.Fprintf(w, "   %*s  %s %s %s\n", length, short(at),
					fit(Printable(severity), severityWidth), fit(service, serviceWidth),
					Printable(l.Body().AsString()))
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// start is the first start of a span. The spans must be ordered.
func (t *Trace) start() int64 {
	if len(t.spans) == 0 {
		return 0
	}
	return t.spans[0].start
}
