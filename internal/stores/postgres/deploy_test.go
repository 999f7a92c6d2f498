package postgres

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/embedded"
	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/driver"
)

// The role of deploy/kubernetes can use the store with the URL that docs/kubernetes.md gives it.
func TestRoleOfKubernetes(t *testing.T) {
	server := embedded.PostgresForTest(t)
	ctx, admin := context.Background(), connect(t, server.DSN())
	sql, err := os.ReadFile("../../../deploy/kubernetes/stores/postgres/role.sql")
	if err != nil {
		t.Fatal(err)
	}
	execute(t, admin, strings.Replace(string(sql), ":'password'", "'secret'", 1))
	t.Cleanup(func() { execute(t, admin, "DROP OWNED BY traceflake; DROP ROLE traceflake") })

	u, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("traceflake", "secret")
	parameters := u.Query()
	parameters.Set("search_path", "traceflake")
	u.RawQuery = parameters.Encode()
	s, err := driver.Open(ctx, u.String(), driver.NodeRange{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if _, err := s.Acquire(ctx, lease.Request{Holder: lease.NewHolder(), Now: time.Now(), TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if n := value[int](t, admin, "SELECT count(*)::int FROM traceflake.traceflake_leases"); n == 0 {
		t.Error("the table is not in the role's schema")
	}
	page, err := os.ReadFile("../../../docs/kubernetes.md")
	if err != nil || !strings.Contains(string(page), "search_path=traceflake") {
		t.Errorf("docs/kubernetes.md gives another URL: %v", err)
	}
}
