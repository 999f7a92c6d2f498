package clickhouse_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

var update = flag.Bool("update", false, "write testdata again")

// golden holds text against a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the code gives; see the difference after go test ./clickhouse -update\n%s", file, got)
	}
}

func TestStatements(t *testing.T) {
	for name, s := range map[string]clickhouse.Schema{
		"service.sql": {TTL: 30 * 24 * time.Hour},
		"trace.sql":   {Layout: clickhouse.TraceFirst},
		"lookup.sql":  {TTL: time.Hour, KeepLookup: true},
		"overlay.sql": {Database: "otel", Layout: clickhouse.Overlay},
		"cluster.sql": {Database: "otel", Table: "spans", Cluster: "main"},
		"macro.sql":   {Database: "otel", Cluster: "{cluster}"},
	} {
		statements, err := s.Statements()
		if err != nil {
			t.Fatal(err)
		}
		if s.KeepLookup { // only those that differ
			s.KeepLookup = false
			others, err := s.Statements()
			if err != nil {
				t.Fatal(err)
			}
			statements = slices.DeleteFunc(statements, func(statement string) bool { return slices.Contains(others, statement) })
		}
		golden(t, name, clickhouse.Script(statements))
	}
}

func TestFunctionsIsAScript(t *testing.T) {
	if got := strings.Count(clickhouse.Functions(), "CREATE OR REPLACE FUNCTION "); got != 8 || !strings.HasSuffix(clickhouse.Functions(), ";\n") {
		t.Errorf("%d functions", got)
	}
}

func TestDropLookup(t *testing.T) {
	drop, err := clickhouse.Schema{Database: "otel", Layout: clickhouse.Overlay}.DropLookup()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (clickhouse.Schema{KeepLookup: true}).DropLookup(); err == nil {
		t.Error("a lookup table that is to be kept is dropped")
	}
	golden(t, "alter.sql", clickhouse.Script(drop))
}

func TestBadSchemas(t *testing.T) {
	for message, s := range map[string]clickhouse.Schema{
		`database "a.b"`:               {Database: "a.b"},
		"database \"a`b\"":             {Database: "a`b"},
		`table "it's"`:                 {Table: "it's"},
		`table "spans; DROP"`:          {Table: "spans; DROP"},
		`table "öl"`:                   {Table: "öl"},
		"table \"" + long + "\"":       {Table: long},
		`cluster "{a"`:                 {Cluster: "{a"},
		`cluster "a' b"`:               {Cluster: "a' b"},
		"layout 7":                     {Layout: 7},
		"slack -1h":                    {Slack: -time.Hour},
		"KeepLookup is for one server": {KeepLookup: true, Cluster: "c"},
		"TTL -1h":                      {TTL: -time.Hour},
		"TTL 1.5s":                     {TTL: 1500 * time.Millisecond},
		"TTL 2562047h":                 {TTL: 2562047 * time.Hour},
	} {
		all := map[string]func() error{
			"Statements":    func() error { _, err := s.Statements(); return err },
			"DropLookup":    func() error { _, err := s.DropLookup(); return err },
			"Trace":         func() error { _, err := s.Trace([16]byte{1}); return err },
			"Newest":        func() error { _, err := s.Newest(day, day.Add(1), [16]byte{}, 1); return err },
			"SpansOfTraces": func() error { _, err := s.SpansOfTraces(day, day.Add(1)); return err },
			"Spans":         func() error { _, err := s.Spans(day, day.Add(1)); return err },
			"Search":        func() error { _, err := s.Search(clickhouse.Search{From: day, To: day.Add(1)}); return err },
			"Create":        func() error { return s.Create(t.Context(), nil) },
		}
		for name, call := range all {
			if err := call(); err == nil || !strings.HasPrefix(err.Error(), "clickhouse: "+message) {
				t.Errorf("%s of %+v: %v, want %s", name, s, err, message)
			}
		}
	}
}

var (
	long = strings.Repeat("x", 129)
	day  = time.Date(2026, 10, 15, 0, 0, 0, 0, time.UTC)
)
