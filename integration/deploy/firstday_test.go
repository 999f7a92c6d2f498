// Package deploy tests what users start: the README's quick start, the manifests of
// deploy/kubernetes with the example services on a real API server, and the example's gateway.
package deploy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
)

const (
	// example is the package of the example services.
	example = "github.com/traceflake/traceflake/examples/otelhttp"
	// probeVar is the variable with the address at which they serve /ready and /metrics.
	probeVar = "PROBE_ADDRESS"
)

// end ends a program as the kubelet does.
func end(t *testing.T, p *child.Server) {
	t.Helper()
	if err := p.Terminate(); err != nil {
		t.Errorf("%v\n%s", err, p.Output())
	}
}

// create creates the objects of the manifests for a store in a new namespace with Kubernetes'
// strictest rules for pods, and returns their YAML.
func create(t *testing.T, s *kubernetes.Server, namespace, store string) (manifests string) {
	t.Helper()
	text, err := render(t, store, namespace).AsYaml()
	if err == nil {
		err = s.Create(t.Context(), "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+
			", labels: {pod-security.kubernetes.io/enforce: restricted}}}\n---\n"+string(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A fleet's first day on a real API server with the manifests, their environment and the rights of
// their account: the store is created, two services and a gateway start, and then an operator makes
// every mistake. docs/first-day.txt is its record for people; TRACEFLAKETEST_UPDATE=1 writes it
// again.
func TestFirstDay(t *testing.T) {
	s := child.ForTest(t, kubernetes.Start)
	create(t, s, "with-postgres", "postgres")
	create(t, s, "with-s3", "s3")
	manifests := create(t, s, "first-day", "kubernetes")
	// The API server can be unavailable, and its clock seem wrong to a machine whose own is.
	var down atomic.Bool
	api := func(user string, ahead time.Duration) string {
		target, err := url.Parse(s.Proxy(kubernetes.Token(kubernetes.Admin)))
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.ModifyResponse = func(r *http.Response) error {
			r.Header.Set("Date", time.Now().Add(-ahead).UTC().Format(http.TimeFormat))
			return nil
		}
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				http.Error(w, "unavailable", http.StatusServiceUnavailable)
				return
			}
			if user != "" { // otherwise it is the operator
				r.Header.Set("Impersonate-User", user)
			}
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)
		return "k8s://first-day/traceflake?server=" + front.URL
	}

	const account = "system:serviceaccount:first-day:orders" // of the manifests
	pods := api(account, 0)
	d := &day{t: t, dir: t.TempDir(), programs: map[string]string{
		"traceflake": child.Build(t, child.Traceflake),
		"service":    child.Build(t, example),
	}}
	// of two values the last one counts
	variable := regexp.MustCompile(`(?m)^ +- name: ([A-Z_]+)\n +value: (.+)$`)
	for _, v := range variable.FindAllStringSubmatch(manifests, -1) {
		d.env = append(d.env, v[1]+"="+strings.Trim(v[2], `"`))
	}
	d.env = append(d.env, "TRACEFLAKE_SECRET_FILE="+filepath.Join(d.dir, "secret"), "HOME="+d.dir,
		probeVar+"=", "TRACEFLAKE_TTL=4s",
		"TRACEFLAKE_STORE="+api("", 0))

	d.title("Before anything exists")
	d.run(1, "doctor")
	d.title("The store is created, once")
	d.run(0, "lease", "create")
	d.run(0, "lease", "create")
	d.run(0, "doctor")

	d.title("Two services and a gateway start")
	address := func(p *child.Server) string { return child.Await(t, p, 1, child.Served)[0] }
	d.env = append(d.env, "TRACEFLAKE_STORE="+pods)
	orders := d.start("orders")
	shop := d.start("shop", "ORDERS_URL="+address(orders))
	front := d.start("gateway", "BACKEND_URL="+address(shop))
	header, _ := child.Get(t, address(front)+"/checkout")
	d.run(0, "inspect", header.Get("x-trace-id"))
	d.run(0, "lease", "list", "--held")

	d.title("The secret is missing")
	d.fails("TRACEFLAKE_SECRET_FILE=" + filepath.Join(d.dir, "missing"))
	d.title("The URL names another store")
	d.fails("TRACEFLAKE_STORE=" + strings.Replace(pods, "/traceflake?", "/orders?", 1))
	d.title("The secret is another store's")
	foreign := filepath.Join(d.dir, "secret-dffd")
	child.Write(t, foreign, "dffd6021bb2bd5b0af676290809ec3a5")
	d.fails("TRACEFLAKE_SECRET_FILE=" + foreign)

	d.title("The store is unavailable at the start")
	down.Store(true)
	alone := d.start("orders")
	child.Get(t, address(alone)) // it serves, with random IDs
	end(t, alone)
	d.say(alone)
	d.title("The store becomes unavailable later")
	child.Await(t, orders, 1, "503")
	d.say(orders)
	d.run(1, "doctor")
	d.title("It is back: processes renew their leases by themselves")
	down.Store(false)
	d.until(3)
	d.run(0, "doctor")

	d.title("A pod is killed: its block is free when its lease is over")
	if err := shop.Kill(); err != nil {
		t.Fatal(err)
	}
	d.until(2)
	d.run(0, "lease", "list", "--held")

	d.title("The clock of a machine is two hours ahead of the store's")
	d.env = append(d.env, "TRACEFLAKE_STORE="+api(account, 2*time.Hour))
	d.run(1, "doctor")
	d.fails()
	d.title("The clock of a machine is two hours behind the store's")
	d.fails("TRACEFLAKE_STORE=" + api(account, -2*time.Hour))
	d.env = append(d.env, "TRACEFLAKE_STORE="+pods)

	d.title("An operator begins a history: processes switch by themselves")
	d.run(0, "lease", "rekey")
	d.until(2)
	d.run(0, "lease", "list")
	end(t, orders)
	end(t, front)
	d.check()
}

// day is a first day, with its record.
type day struct {
	t        *testing.T
	dir      string            // which the transcript names as on a real day
	programs map[string]string // paths
	env      []string
	text     strings.Builder
}

func (d *day) title(text string) { fmt.Fprintf(&d.text, "\n== %s\n", text) }

func (d *day) command(program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(d.t.Context(), d.programs[program], args...)
	cmd.Env = slices.Clone(d.env)
	return cmd
}

// run runs the command, and expects an exit code.
func (d *day) run(code int, args ...string) {
	d.t.Helper()
	fmt.Fprintf(&d.text, "$ traceflake %s\n%s", strings.Join(args, " "),
		child.Output(d.t, code, d.command("traceflake", args...)))
}

// until waits until this many blocks are held: processes ask again by themselves.
func (d *day) until(held int) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out, err := d.command("traceflake", "lease", "list", "--held").CombinedOutput()
		if strings.Count(string(out), "held by") == held {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("not %d blocks are held: %v\n%s", held, err, out)
		}
	}
}

// fails starts orders with another setting, and records its report.
func (d *day) fails(env ...string) {
	d.t.Helper()
	p := d.start("orders", env...)
	child.Await(d.t, p, 1, "fleet: |lease: ")
	_ = p.Terminate() // it may have ended by itself
	d.say(p)
}

// start starts a service with some settings more; of two values the last one counts.
func (d *day) start(name string, env ...string) *child.Server {
	d.t.Helper()
	cmd := d.command("service", name, "127.0.0.1:0")
	cmd.Env = append(cmd.Env, env...)
	return child.Run(d.t, cmd)
}

// say repeats the lines in which a program reports something.
func (d *day) say(p *child.Server) {
	for line := range strings.Lines(p.Output()) {
		if strings.Contains(line, "lease") || strings.Contains(line, "fleet:") ||
			strings.Contains(line, "idgen") {
			d.text.WriteString(line)
		}
	}
}

// check compares the day with the file.
func (d *day) check() {
	d.t.Helper()
	got := "A fleet's first day: what a person reads. TestFirstDay in integration/deploy plays " +
		"it.\n" + d.text.String()
	host, _ := os.Hostname()
	for _, r := range [][2]string{
		{`http://127.0.0.1:\d+`, "http://127.0.0.1:8001"},
		{regexp.QuoteMeta(d.dir), "/etc/traceflake"},
		{`[ \t]+\n`, "\n"},
		{` {2,}`, "  "},
		{`held by \S+`, "held by HOST/PID/TIME"},
		{regexp.QuoteMeta(host), "HOST"},
		{`\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`, "TIME"},
		{`\d{4}-\d\d-\d\d`, "DATE"},
		{`[0-9a-f]{32}`, "ID"},
		{`\d+-\d+  TIME`, "NODES  TIME"},
		{`TIME  \d+  held`, "TIME  VERSION  held"},
		{`(node|block) \d+(\+8)?`, "$1 N"},
		{`(sequence) \d+`, "$1 N"},
		{`1h59m\d+s|2h(0m)?\d+s`, "2h"},
	} {
		got = regexp.MustCompile(r[0]).ReplaceAllString(got, r[1])
	}
	child.Matches(d.t, "docs/first-day.txt", got)
}
