package collector

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestAdoptWalk adopts the table of the Collector's exporter, back and forth, while an exporter
// stores spans and restarts after each command with create_schema. The command is killed before
// each of its statements, and while the server runs it.
// Each span is stored once, and found by its trace ID. The tables are those of this version of the
// exporter, and those that v0.161.0 created: a module cannot be linked in two versions.
func TestAdoptWalk(t *testing.T) {
	recorded := child.Read(t, "integration/collector/testdata/exporter-0.161.0.sql")
	_, older, _ := strings.Cut(recorded, "\n")
	for version, statements := range map[string][]string{"0.161.0": strings.Split(older, ";\n"),
		"this version": nil} {
		t.Run(version, func(t *testing.T) {
			e := database(t)
			for _, statement := range statements {
				e.Rows(t, statement)
			}
			walk(t, e)
		})
	}
}

// walk adopts the exporter's table.
func walk(t *testing.T, e *servers.Engine) {
	path := child.Build(t, child.Traceflake)
	ids := idgen.New()
	var stored atomic.Uint64 // spans
	var lock sync.Mutex
	to := collector(t, examples+"overlay.yaml") // creates the tables that are missing
	restart := func() {
		lock.Lock()
		defer lock.Unlock()
		to = collector(t, examples+"overlay.yaml") // the former ends with the test
	}
	store := func() {
		lock.Lock()
		defer lock.Unlock()
		if err := to.ConsumeTraces(t.Context(), batch(ids, stored.Load())); err != nil {
			t.Error(err)
		}
		stored.Add(20)
	}
	kinds := func() string {
		return fmt.Sprint(e.Rows(t, "SELECT name, uuid, create_table_query FROM system.tables "+
			"WHERE database = currentDatabase() AND startsWith(name, 'otel_traces_trace_id_ts') "+
			"ORDER BY name"))
	}
	lookup := kinds()
	var writer sync.WaitGroup
	writing, end := context.WithCancel(t.Context())
	defer writer.Wait()
	defer end()
	writer.Go(func() {
		for writing.Err() == nil && !t.Failed() {
			store()
		}
	})

	killer := killer{seen: map[string]bool{}}
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", killer.proxy(t, e.DSN()))
	adopt := func(operation string) {
		t.Helper()
		for again := true; again; {
			cmd := exec.Command(path, "clickhouse", "adopt", operation)
			if operation == "prepare" {
				cmd.Args = append(cmd.Args, "--policies-checked") // this engine shows none
			}
			killer.running = cmd
			out, _ := cmd.CombinedOutput() // its exit code tells
			code := cmd.ProcessState.ExitCode()
			if again = code < 0; code > 0 {
				t.Fatalf("%s: %s", operation, out)
			}
			if now := kinds(); now != lookup {
				t.Fatalf("%s changed %s to %s", operation, lookup, now)
			}
			restart()
			store()
		}
	}
	for _, operation := range []string{"prepare", "swap", "undo", "swap"} {
		adopt(operation)
	}
	end()
	writer.Wait()
	adopt("swap") // repeated, as docs/clickhouse.md says for inserts that take longer than a second
	n := int(stored.Load())
	restart()
	rows := e.Rows(t, "SELECT count(), uniqExact(SpanId), (SELECT uniqExact(TraceId) FROM "+
		"otel_traces_trace_id_ts) FROM otel_traces_all")
	if want := fmt.Sprintf("[[%d %d %d]]", n, n, n/2); fmt.Sprint(rows) != want {
		t.Errorf("stored, different, and traces in the lookup table: %s, want %s", rows, want)
	}
	if names := fmt.Sprint(e.Rows(t, "SHOW TABLES")); kinds() != lookup || names !=
		"[[otel_traces] [otel_traces_all] [otel_traces_all_trace_id_ts] [otel_traces_other] "+
			"[otel_traces_trace_id_ts] [otel_traces_trace_id_ts_mv]]" {
		t.Errorf("the lookup table is now %s; the tables are %s", kinds(), names)
	}
	t.Logf("%d kills, %d spans", len(killer.seen), n)
}

// killer kills a running command at its statements.
type killer struct {
	running *exec.Cmd
	seen    map[string]bool
}

// randomName is the random end of a name.
var randomName = regexp.MustCompile(`_[a-z2-7]{8}\b`)

// proxy returns the DSN of a proxy that kills the running command before it passes on a statement,
// and the next time after that, unless the statement reads or creates a function.
func (k *killer) proxy(t *testing.T, dsn string) string {
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	next := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: at.Scheme, Host: at.Host})
	settled := strings.NewReplacer("SELECT sleep(1)", "SELECT 1",
		"max(modification_time) < now() - INTERVAL 10 MINUTE", "1")
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		statement := settled.Replace(string(body))
		key := strings.Join(k.running.Args, " ") + randomName.ReplaceAllString(statement, "")
		reads := strings.HasPrefix(statement, "SELECT") ||
			strings.HasPrefix(statement, "CREATE OR REPLACE FUNCTION")
		before, in := !reads && !k.seen[key], !reads && k.seen[key] && !k.seen[key+" in"]
		if before || in {
			k.seen[key+map[bool]string{in: " in"}[true]] = true
			_ = k.running.Process.Kill()
		}
		if before {
			return
		}
		r = r.WithContext(context.WithoutCancel(r.Context()))
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(statement)), int64(len(statement))
		answer := httptest.NewRecorder() // does not tell the proxy that the command is dead
		next.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(proxy.Close)
	at.Host = strings.TrimPrefix(proxy.URL, "http://")
	return at.String()
}
