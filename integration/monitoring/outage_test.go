package monitoring_test

import (
	"context"
	"errors"
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
	program := os.Getenv("TRACEFLAKETEST_PROMETHEUS")
	if program == "" {
		t.Skip("make nightly runs it, with a Prometheus")
	}
	store := child.ForTest(t, s3.Start)
	s3.Root.Setenv(t)
	for name, value := range map[string]string{
		"STORE": "s3://" + s3.Bucket + "/leases?region=" + s3.Region + "&endpoint=" +
			url.QueryEscape(store.Endpoint()),
		"SECRET_FILE": filepath.Join(t.TempDir(), "secret"),
		"TTL":         "4m",
	} {
		t.Setenv("TRACEFLAKE_"+name, value)
	}
	t.Setenv("PROBE_ADDRESS", "127.0.0.1:0")
	child.Output(t, 0, exec.CommandContext(t.Context(), child.Build(t, child.Traceflake), "lease",
		"create"))
	orders := child.Run(t, exec.Command(
		child.Build(t, "github.com/traceflake/traceflake/examples/otelhttp"), "orders",
		"127.0.0.1:0"))
	at := child.Await(t, orders, 2, child.Served)
	p := scrape(t, program, strings.TrimPrefix(at[1], "http://"))

	query := func(expr string) string {
		t.Helper()
		_, text := child.Get(t, "http://"+p.Address+"/api/v1/query?query="+url.QueryEscape(expr))
		return text
	}
	// firing reports whether these alerts fire, or with none whether no alert does.
	firing := func(names ...string) bool {
		t.Helper()
		text := query(`ALERTS{alertstate="firing"}`)
		missing := func(name string) bool {
			return !strings.Contains(text, `"Traceflake`+name+`"`)
		}
		return !slices.ContainsFunc(names, missing) &&
			(len(names) > 0 || !strings.Contains(text, "Traceflake"))
	}
	await := func(what string, limit time.Duration, done func() bool) {
		t.Helper()
		for began := time.Now(); !done(); time.Sleep(500 * time.Millisecond) {
			if time.Since(began) > limit {
				t.Fatalf("after %s: not %s: %s", limit, what, query("ALERTS"))
			}
			child.Get(t, at[0]) // the service has requests all the time
		}
	}
	holds := func() bool {
		r, err := http.Get(at[1] + "/ready")
		return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
	}
	await("scraped", time.Minute, func() bool {
		return holds() && strings.Contains(query("traceflake_lease_blocks"), `"1"`)
	})
	if !firing() {
		t.Errorf("before the outage: %s", query("ALERTS"))
	}
	if err := store.Kill(); err != nil {
		t.Fatal(err)
	}
	await("ending", 8*time.Minute, func() bool { return firing("LeaseEndsSoon") })
	await("alerted", 8*time.Minute,
		func() bool { return firing("NoLease", "RandomIDs", "StoreFailing") })
	if err := store.Run(); err != nil {
		t.Fatal(err)
	}
	await("recovered", time.Minute, holds)
	await("quiet", time.Minute, func() bool { return firing() })

	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*")
	leases, _ := parsed(t, "leases")
	for _, panel := range leases.Panels {
		for _, target := range panel.Targets {
			query(variables.Replace(target.Expr))
		}
	}
}

// scrape starts a Prometheus with the rules of deploy, which scrapes an address.
func scrape(t *testing.T, program, target string) *child.Server {
	t.Helper()
	rules, dir := filepath.Join(child.Repository, "deploy/prometheus/traceflake.rules.yml"),
		t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	child.Write(t, config, fmt.Sprintf(
		`{global: {scrape_interval: 15s, evaluation_interval: 15s}, rule_files: [%q],
		scrape_configs: [{job_name: orders, static_configs: [{targets: [%q]}]}]}`, rules, target))
	p := &child.Server{Name: "prometheus"}
	p.Command = func() *exec.Cmd {
		return child.Foreign(program, "--config.file="+config, "--storage.tsdb.path="+
			filepath.Join(dir, "data"), "--web.listen-address="+p.Address)
	}
	p.Answers = func(context.Context) error {
		r, err := http.Get("http://" + p.Address + "/-/ready")
		if err != nil {
			return err
		}
		if r.StatusCode != http.StatusOK {
			err = errors.New(r.Status)
		}
		return errors.Join(err, r.Body.Close())
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	return p
}
