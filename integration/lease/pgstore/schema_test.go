package pgstore

import (
	"context"
	_ "embed"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/pgstore"
)

var (
	//go:embed testdata/schema1.sql
	schema1 string // a table that the version with schema 1 wrote
	//go:embed testdata/statements1.sql
	statements1 string // its statements
)

// written is what List says of the table of schema 1.
func written() []lease.Block {
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	block := func(node uint32, until time.Time, holder string, version uint64) lease.Block {
		return lease.Block{Node: node, Nodes: few.BlockSize, Start: t0, GrantedUntil: until, Holder: holder, Version: version}
	}
	return []lease.Block{
		block(0, t0.Add(5*time.Minute), strings.Repeat("b", 32), 2),
		block(1<<15, t0.Add(10*time.Second), "", 2), // released
		block(3<<15, t0.Add(time.Minute), strings.Repeat("a", 32), 1),
	}
}

func wantWritten(t *testing.T, s lease.Admin) {
	t.Helper()
	got, err := s.List(context.Background())
	want := written()
	if err != nil || len(got) != len(want) {
		t.Fatalf("list: %+v, %v; want %+v", got, err, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("block %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

// A table of schema 1 is migrated without losing a grant, and what the older
// version sends to it is refused from then on.
func TestTableOfTheVersionBefore(t *testing.T) {
	server := servers.PostgresForTest(t)
	ctx, pool := context.Background(), connect(t, server.DSN())
	execute(t, pool, schema1)

	other, err := pgstore.New(pool, pgstore.WithBlockSize(8))
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.List(ctx)
	wantError(t, "another block size", err, lease.ErrBlockSize)
	comment := func() string { return value[string](t, pool, "SELECT obj_description('traceflake_leases'::regclass)") }
	if got := comment(); got != "traceflake leases, schema 1, blocks of 32768 nodes" {
		t.Errorf("a store with another block size left the comment %q", got)
	}

	s, err := pgstore.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.List(ctx) // which only looks
	wantError(t, "list", err, lease.ErrSchemaVersion, "Schema")

	atOnce := make(chan error)
	for range 4 { // processes start together
		s, err := pgstore.New(pool)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, err := s.Get(ctx, lease.Grant{}); atOnce <- err }()
	}
	for range 4 {
		if err := <-atOnce; err != nil {
			t.Error(err)
		}
	}
	wantWritten(t, s)
	if got := comment(); got != "traceflake leases, schema 2, blocks of 32768 nodes" {
		t.Errorf("the comment is %q", got)
	}
	r := lease.Request{Holder: lease.NewHolder(), Now: time.Date(2026, 1, 2, 3, 4, 16, 0, time.UTC), TTL: time.Minute, Owner: "new"}
	for range 2 { // one was released, one was never granted
		g, err := s.Acquire(ctx, r)
		if err != nil || g.Node != 1<<15 && g.Node != 2<<15 {
			t.Errorf("acquire: %+v, %v; want node %d or %d", g, err, 1<<15, 2<<15)
		}
		r.Holder = lease.NewHolder()
	}
	if g, err := s.Acquire(ctx, r); !errors.Is(err, lease.ErrNoFreeNode) {
		t.Errorf("granted over a grant of the version before: %+v, %v", g, err)
	}

	old := strings.Split(statements1, "\n;\n")
	if len(old) != 7 || strings.TrimSpace(old[6]) != "" {
		t.Fatalf("%d statements", len(old))
	}
	before, err := s.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	a := written()[2]
	for i, args := range [][]any{
		{lease.NewHolder(), now * 1e6, now, now + 60, int64(0), int64(1<<17 - 1), int64(6e7), int64(0)},
		{int64(a.Node), int64(a.Nodes), a.Holder, int64(1), now, now * 1e6, int64(9e10)},
		{int64(a.Node), int64(a.Nodes), a.Holder, int64(1), a.Start.Unix()},
		{int64(a.Node)},
		{int64(0), int64(1<<17 - 1)},
		{now, int64(0), int64(1<<17 - 1), int64(4)},
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(old[i], "-- "), "\n")
		_, err := pool.Exec(ctx, old[i], append([]any{pgx.QueryExecModeExec}, args...)...)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "42703" { // undefined_column
			t.Errorf("%s of the version before: %v, want it refused", name, err)
		}
	}
	after, err := s.List(ctx)
	if err != nil || len(after) != len(before) {
		t.Fatalf("%+v, %v", after, err)
	}
	for i := range after {
		if after[i] != before[i] {
			t.Errorf("the version before wrote %+v, was %+v", after[i], before[i])
		}
	}
}

// A role without the right to change the table is told what to do; the
// operator's statement does it, once.
func TestOldTableWithoutRights(t *testing.T) {
	server := servers.PostgresForTest(t)
	ctx, admin := context.Background(), connect(t, server.DSN())
	execute(t, admin, schema1)
	execute(t, admin, "CREATE ROLE traceflake_plain LOGIN PASSWORD 'secret'")
	execute(t, admin, "GRANT SELECT, UPDATE ON traceflake_leases TO traceflake_plain")
	defer execute(t, admin, "DROP OWNED BY traceflake_plain; DROP ROLE traceflake_plain")
	u, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("traceflake_plain", "secret")
	s, err := driver.Open(ctx, u.String(), driver.NodeRange{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	_, err = s.Get(ctx, lease.Grant{})
	wantError(t, "no right to change the table", err, nil, "must be owner", "Store.Schema")

	operator, err := pgstore.New(admin)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, admin, operator.Schema())
	execute(t, admin, operator.Schema())
	wantWritten(t, s)
}

// A store is opened without naming its block size again; with a share of its
// nodes, too.
func TestTheStoresOwnBlockSize(t *testing.T) {
	server := servers.PostgresForTest(t)
	ctx, pool := context.Background(), connect(t, server.DSN())
	first, err := pgstore.New(pool, pgstore.WithBlockSize(1<<15), pgstore.WithNodes(0, 1<<15))
	if err != nil {
		t.Fatal(err)
	}
	if err := use(first); err != nil {
		t.Fatal(err)
	}
	share, err := pgstore.New(pool, pgstore.WithNodes(1<<15, 1<<16))
	if err != nil {
		t.Fatal(err)
	}
	again, err := driver.Open(ctx, server.DSN(), driver.NodeRange{First: 1 << 15, Nodes: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	for _, s := range []lease.Store{share, again} {
		g, err := s.Acquire(ctx, lease.Request{Holder: lease.NewHolder(), Now: time.Now(), TTL: time.Minute})
		if err != nil || g.Nodes != 1<<15 || g.Node < 1<<15 || g.Node >= 3<<15 {
			t.Errorf("got %+v, %v", g, err)
		}
	}
	small, err := pgstore.New(pool, pgstore.WithNodes(8, 8))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "nodes that are no blocks of the store", use(small), lease.ErrInvalidRequest, "multiples")
}
