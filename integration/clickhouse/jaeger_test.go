package clickhouse_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// jaeger returns an engine with spans of the last hours and Jaeger's views of them in the same
// database, and the spans.
func jaeger(t *testing.T) (e *engine, spans []span) {
	t.Helper()
	e = newEngine(t)
	e.creates(clickhouse.Schema{})
	spans = world()
	for i := range spans { // within the day that the menus show
		if spans[i].service == oddService {
			spans[i].service = "odd"
		}
		spans[i].start = spans[i].start.Add(time.Since(noon) - 3*time.Hour).Truncate(1)
	}
	spans = slices.DeleteFunc(spans, func(s span) bool { return s.start.After(time.Now()) })
	e.insert("otel_traces", spans)
	text := strings.NewReplacer("jaeger.", "", "otel.", "", "EXISTS jaeger", "EXISTS "+
		e.Database()).Replace(comments.ReplaceAllString(read("../../deploy/jaeger/views.sql"), ""))
	e.run(strings.Split(text, ";\n"), nil)
	return e, spans
}

// TestJaegerViews: what Jaeger's storage asks, also newer than the release that TestJaeger runs,
// finds on the views what is in the table, and a trace by its ID without the rest of it.
func TestJaegerViews(t *testing.T) {
	e, spans := jaeger(t)
	one, traced := spans[0], 0
	var searched []string
	for _, s := range spans {
		if s.trace == one.trace {
			traced++
		}
		if s.service == one.service && s.name == "GET /0" && s.user == "u1" &&
			s.duration >= 100*time.Millisecond && s.duration <= 900*time.Millisecond {
			searched = append(searched, s.trace)
		}
	}
	searched = slices.Compact(sorted(searched))
	values := strings.NewReplacer("{trace}", one.trace, "{service}", one.service, "{from}",
		stamp(time.Now().Add(-24*time.Hour)), "{to}", stamp(time.Now()))
	found := make(map[string][]string)
	for _, section := range strings.Split(read("testdata/jaeger.sql"), "\n\n-- ")[1:] {
		name, query, _ := strings.Cut(section, "\n")
		found[name] = e.column(values.Replace(strings.TrimSuffix(query, ";")))
	}
	if len(found["trace"]) != traced || len(found["services"]) != 6 ||
		len(found["operations"]) != 4 || len(found["latencies"]) == 0 {
		t.Errorf("%d spans of %d; %q; %q; %d minutes", len(found["trace"]), traced,
			found["services"], found["operations"], len(found["latencies"]))
	}
	if got := sorted(found["search"]); !slices.Equal(got, searched) || len(searched) == 0 {
		t.Errorf("the search finds %q, want %q", got, searched)
	}
	plan := strings.Join(e.column("EXPLAIN indexes = 1 SELECT str_attributes.key FROM spans "+
		"WHERE trace_id = '"+one.trace+"'"), "\n")
	if !strings.Contains(plan, "idx_trace_id") {
		t.Errorf("a lookup does not use the index:\n%s", plan)
	}
}

// TestJaeger runs the real Jaeger on the views: it shows a trace as it is stored, services and
// operations. Its release 1.76 cannot search in ClickHouse.
func TestJaeger(t *testing.T) {
	program := os.Getenv("TRACEFLAKETEST_JAEGER")
	if program == "" {
		t.Skip("make nightly runs it, with a Jaeger")
	}
	e, spans := jaeger(t)
	at, err := url.Parse(e.DSN())
	if err != nil {
		t.Fatal(err)
	}
	ports, err := child.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := at.User.Password()
	j := &child.Server{Name: "jaeger"}
	j.Command = func() *exec.Cmd {
		cmd := child.Foreign(program, "--config", filepath.Join(child.Repository,
			"deploy/jaeger/config.yaml"), "--set",
			"extensions::jaeger_query::http::endpoint="+j.Address, "--set",
			"extensions::jaeger_query::grpc::endpoint="+ports[0], "--set",
			"extensions::jaeger_storage::backends::clickhouse::clickhouse::database="+e.Database(),
			"--set", "service::telemetry::metrics::level=none")
		cmd.Env = append(cmd.Environ(), "CLICKHOUSE_ADDRESS="+at.Host, "CLICKHOUSE_USER="+
			at.User.Username(), "CLICKHOUSE_PASSWORD="+password)
		return cmd
	}
	j.Answers = j.Listens
	if err := j.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Stop() })
	get := func(path string, into any) {
		t.Helper()
		_, text := child.Get(t, "http://"+j.Address+"/api/"+path)
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%s: %v\n%s", path, err, text)
		}
	}
	var traces struct {
		Data []struct {
			Spans []struct {
				SpanID, OperationName string
				StartTime, Duration   int64 // microseconds
				Tags                  []struct{ Key, Type string }
			}
		}
	}
	one := spans[0].trace
	get("traces/"+one, &traces)
	var got, want []string
	for _, s := range traces.Data[0].Spans {
		user := slices.ContainsFunc(s.Tags,
			func(tag struct{ Key, Type string }) bool { return tag.Key == "user.id" })
		got = append(got, fmt.Sprint(s.SpanID, s.OperationName, s.StartTime, s.Duration, user))
	}
	for _, s := range spans {
		if s.trace == one {
			want = append(want, fmt.Sprint(hex(s.id), s.name, s.start.UnixMicro(),
				s.duration.Microseconds(), true))
		}
	}
	if !slices.Equal(sorted(got), sorted(want)) {
		t.Errorf("Jaeger shows %q, want %q", got, want)
	}
	var names struct{ Data []string }
	get("services", &names)
	if len(names.Data) != 6 {
		t.Errorf("Jaeger shows the services %q", names.Data)
	}
	get("services/"+spans[0].service+"/operations", &names)
	if len(names.Data) != 4 {
		t.Errorf("Jaeger shows the operations %q", names.Data)
	}
}
