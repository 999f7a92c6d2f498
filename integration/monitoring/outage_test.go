package monitoring_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/s3"
)

// A Prometheus with the real rules scrapes the example service while the store is killed. The
// alerts of an outage fire, and all are over at most a minute after the process has a lease again.
// The dashboards' queries run.
// It takes about seven minutes, most of them asleep.
func TestOutage(t *testing.T) {
	prometheus := os.Getenv("TRACEFLAKETEST_PROMETHEUS")
	if prometheus == "" {
		t.Skip("make nightly runs it, with a Prometheus")
	}
	store := child.ForTest(t, s3.Start)
	s3.Root.Setenv(t)
	t.Setenv("TRACEFLAKE_STORE", "s3://"+s3.Bucket+"/leases?region="+s3.Region+"&endpoint="+
		url.QueryEscape(store.Endpoint()))
	t.Setenv("TRACEFLAKE_SECRET_FILE", filepath.Join(t.TempDir(), "secret"))
	t.Setenv("TRACEFLAKE_TTL", "4m")
	t.Setenv("PROBE_ADDRESS", "127.0.0.1:0")
	child.Output(t, 0, exec.CommandContext(t.Context(), child.Build(t, child.Traceflake), "lease",
		"create"))
	orders := child.Run(t, exec.Command(
		child.Build(t, "github.com/traceflake/traceflake/examples/otelhttp"), "orders",
		"127.0.0.1:0"))
	at := child.Await(t, orders, 2, child.Served)
	p := scrape(t, prometheus, strings.TrimPrefix(at[1], "http://"))

	// The service has requests all the time.
	go func() {
		for t.Context().Err() == nil {
			if r, err := http.Get(at[0]); err == nil {
				_ = r.Body.Close()
			}
			time.Sleep(500 * time.Millisecond)
		}
	}()
	const wants = "LeaseEndsSoon, NoLease, RandomIDs, StoreFailing"
	seen := make(map[string]bool)
	firing := func() (names []string) {
		var answer struct {
			Data struct {
				Alerts []struct {
					State  string
					Labels map[string]string
				}
			}
		}
		_, text := child.Get(t, "http://"+p.Address+"/api/v1/alerts")
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err)
		}
		for _, a := range answer.Data.Alerts {
			if name := strings.TrimPrefix(a.Labels["alertname"],
				"Traceflake"); a.State == "firing" {
				seen[name] = true
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	await := func(what string, limit time.Duration, done func() bool) time.Duration {
		t.Helper()
		began := time.Now()
		for !done() {
			if time.Since(began) > limit {
				t.Fatalf("after %s: not %s; firing are %q, there were %v", limit, what, firing(),
					seen)
			}
			time.Sleep(time.Second)
		}
		took := time.Since(began)
		t.Logf("%s after %.0f s", what, took.Seconds())
		return took
	}
	held := func() bool {
		r, err := http.Get(at[1] + "/ready")
		if err != nil {
			t.Fatal(err)
		}
		return r.Body.Close() == nil && r.StatusCode == http.StatusOK
	}
	await("ready", 30*time.Second, held)
	await("scraped", 30*time.Second, func() bool {
		_, text := child.Get(t, "http://"+p.Address+"/api/v1/query?query=traceflake_lease_blocks")
		return strings.Contains(text, `"1"`)
	})
	time.Sleep(20 * time.Second)
	if names := firing(); len(names) > 0 {
		t.Errorf("before the outage %q fire", names)
	}
	if err := store.Kill(); err != nil {
		t.Fatal(err)
	}
	await("alerted by all", 8*time.Minute, func() bool {
		firing()
		for name := range strings.SplitSeq(wants, ", ") {
			if !seen[name] {
				return false
			}
		}
		return true
	})
	if err := store.Run(); err != nil {
		t.Fatal(err)
	}
	await("recovered", time.Minute, held)
	await("quiet", time.Minute, func() bool { return len(firing()) == 0 })

	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*")
	for _, d := range dashboards(t) {
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				if target.Expr != "" {
					child.Get(t, "http://"+p.Address+"/api/v1/query?query="+
						url.QueryEscape(variables.Replace(target.Expr)))
				}
			}
		}
	}
}

// scrape starts a Prometheus with the rules of deploy, which scrapes an address.
func scrape(t *testing.T, program, target string) *child.Server {
	t.Helper()
	rules, dir := filepath.Join(child.Repository, "deploy/prometheus/traceflake.rules.yml"),
		t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(
		`{global: {scrape_interval: 15s, evaluation_interval: 15s}, rule_files: [%q],
		scrape_configs: [{job_name: orders, static_configs: [{targets: [%q]}]}]}`, rules, target)
	child.Write(t, config, text)
	p := &child.Server{Name: "prometheus"}
	p.Command = func() *exec.Cmd {
		return child.Foreign(program, "--config.file="+config, "--storage.tsdb.path="+
			filepath.Join(dir, "data"), "--web.listen-address="+p.Address)
	}
	p.Answers = func(context.Context) error {
		r, err := http.Get("http://" + p.Address + "/-/ready")
		if err == nil && r.StatusCode != http.StatusOK {
			err = fmt.Errorf("prometheus: %s", r.Status)
		}
		if r != nil {
			_ = r.Body.Close()
		}
		return err
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	return p
}
