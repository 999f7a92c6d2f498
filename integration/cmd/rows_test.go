//go:build unix

package cmd_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/s3"
)

// The doctor of a service with a mistake in its URL says what the server refuses, and how to fix
// it. The servers have no TLS, and unless a URL says so, PostgreSQL's client tries TLS first.
func TestDoctorOnMistakes(t *testing.T) {
	postgres, s := child.ForTest(t, servers.Postgres), child.ForTest(t, s3.Start)
	cluster := strings.TrimPrefix(etcd.ForTest(t, 1).Endpoints()[0], "http://")
	conn := postgres.Connect(t)
	execute := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	execute("CREATE ROLE sleeper NOLOGIN PASSWORD 'hunter2'; " +
		"CREATE ROLE few LOGIN PASSWORD 'hunter2' CONNECTION LIMIT 0")
	t.Cleanup(func() { execute("DROP ROLE sleeper; DROP ROLE few") })
	u, err := url.Parse(postgres.DSN())
	if err != nil {
		t.Fatal(err)
	}
	as := func(user *url.Userinfo) string {
		changed := *u
		changed.User, changed.RawQuery = user, "sslmode=prefer"
		return changed.String()
	}
	with := func(path, query string) string {
		changed := *u
		changed.Path, changed.RawQuery = path, query
		return changed.String()
	}
	const mixed, other = "use TLS on both sides or on neither", "another kind of server listens"
	path, secret := child.Build(t, child.Traceflake), filepath.Join(t.TempDir(), "secret")
	child.Write(t, secret, "dffd6021bb2bd5b0af676290809ec3a5\n")
	var all sync.WaitGroup
	slots := make(chan struct{}, 3) // a check has 5 s, and some use them up
	for _, c := range []struct{ store, found, fix string }{
		{as(url.UserPassword(u.User.Username(), "wrong")), "SQLSTATE 28P01",
			"correct user and password"},
		{as(url.User(u.User.Username())), "SQLSTATE 28P01", "correct user and password"},
		{as(url.UserPassword("nobody", "hunter2")), "SQLSTATE 28P01", "correct user and password"},
		{as(url.UserPassword("sleeper", "hunter2")), "SQLSTATE 28000", "let it log in"},
		{as(url.UserPassword("few", "hunter2")), "SQLSTATE 53300", "raise its limit or the role's"},
		{with("/missing", ""), "SQLSTATE 3D000", "create the database"},
		{with(u.Path, "foo=bar"), "SQLSTATE 42704", "remove the parameter"},
		{with(u.Path, "statement_timeout=x"), "SQLSTATE 22023", "invalid value"},
		{with(u.Path, "sslmode=require"), "the server refuses TLS", mixed},
		{"'" + u.String() + "'", "unknown kind of store", "remove the quotes"},
		{"etcds://" + cluster, "handshake failed", mixed},
		{"etcd://" + u.Host, "server preface", other},
		{"etcd://" + s.Address, "server preface", other},
		{"etcd://no.such.invalid", "no.such.invalid:2379", "the DNS of this machine"},
		{"s3://leases?region=r&endpoint=http://" + s.Address, "no credentials",
			"set AWS_ACCESS_KEY_ID"},
		{"k8s://a/b?server=http://" + s.Address, "not a response", "another server answers"},
		{"clickhouse://" + u.Host + "/otel", "clickhouse: connect", "9000 for clickhouse://"},
		{"clickhouse://" + s.Address + "/otel", "clickhouse: connect", "9000 for clickhouse://"},
	} {
		cmd := exec.CommandContext(t.Context(), path, "doctor", "--store", c.store,
			"--secret-file", secret)
		if strings.HasPrefix(c.store, "clickhouse") {
			cmd = exec.CommandContext(t.Context(), path, "doctor", "--dsn", c.store)
		}
		cmd.Env = append(os.Environ(), "AWS_EC2_METADATA_DISABLED=true",
			"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			out, _ := cmd.CombinedOutput()
			_, wrong, _ := strings.Cut(string(out), "WRONG")
			found, fix, _ := strings.Cut(wrong, "→")
			if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(found, c.found) ||
				!strings.Contains(fix, c.fix) || strings.Contains(found, "tls error") {
				t.Errorf("%s: code %d\n%s\nwant %q and → %q", c.store,
					cmd.ProcessState.ExitCode(), out, c.found, c.fix)
			}
		})
	}
	all.Wait()
}
