package pgstore

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

var few = driver.NodeRange{First: 0, Nodes: 1 << 17, BlockSize: 1 << 15}

func value[T any](tb testing.TB, pool *pgxpool.Pool, sql string, args ...any) T {
	tb.Helper()
	var v T
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return v
}

// Where the database commits without waiting for the disk, the store waits.
func TestSynchronousCommitIsForcedOn(t *testing.T) {
	server := servers.PostgresForTest(t)
	for _, c := range []struct{ byDefault, want string }{
		{"off", "on"},
		{"local", "on"},
		{"remote_apply", "remote_apply"},
	} {
		t.Run(c.byDefault, func(t *testing.T) {
			setup := connect(t, server.DSN())
			execute(t, setup, "DROP TABLE IF EXISTS traceflake_leases, traceflake_leases_store, commits CASCADE")
			execute(t, setup, "ALTER DATABASE "+value[string](t, setup, "SELECT quote_ident(current_database())")+" SET synchronous_commit = "+c.byDefault)
			pool := connect(t, server.DSN()) // new sessions
			if got := value[string](t, pool, "SHOW synchronous_commit"); got != c.byDefault {
				t.Fatalf("synchronous_commit is %s", got)
			}
			s := created(t, pool, few)
			ctx, now := context.Background(), time.Now()
			g, err := s.Acquire(ctx, calls.Request(now))
			if err != nil {
				t.Fatal(err)
			}

			// A deferred trigger runs as part of the commit, and sees what
			// decides whether that waits.
			execute(t, pool, "CREATE TABLE commits (setting text)")
			execute(t, pool, `CREATE FUNCTION log_commit() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN INSERT INTO commits VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$`)
			defer execute(t, pool, "DROP FUNCTION log_commit CASCADE")
			execute(t, pool, `CREATE CONSTRAINT TRIGGER log_commit AFTER UPDATE ON traceflake_leases
				DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_commit()`)
			logged := func(what, want string, write func() error) {
				t.Helper()
				execute(t, pool, "TRUNCATE commits")
				if err := write(); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if got := value[string](t, pool, "SELECT string_agg(DISTINCT setting, ',') FROM commits"); got != want {
					t.Errorf("%s: committed with synchronous_commit = %s, want %s", what, got, want)
				}
			}
			logged("a plain update", c.byDefault, func() error {
				_, err := pool.Exec(ctx, "UPDATE traceflake_leases SET version = version WHERE node = 0")
				return err
			})
			logged("renew", c.want, func() (err error) {
				g, err = s.Renew(ctx, g, calls.Renewal(lease.NewNonce(), g.End.Add(time.Minute)))
				return err
			})
			logged("release", c.want, func() error { return s.Release(ctx, g, lease.NewNonce(), now) })
			logged("acquire", c.want, func() error {
				_, err := s.Acquire(ctx, calls.Request(now))
				return err
			})
			logged("raise", c.want, func() error {
				_, err := s.Raise(ctx, now)
				return err
			})
			if got := value[string](t, pool, "SHOW synchronous_commit"); got != c.byDefault {
				t.Errorf("the session is left with synchronous_commit = %s", got)
			}
		})
	}
}

// What a call returns is on the disk: also when it only read, and the commit
// that it read was none that waited.
func TestAnswersAreFlushed(t *testing.T) {
	server := servers.PostgresForTest(t)
	ctx, pool := context.Background(), connect(t, server.DSN())
	s := created(t, pool, few)
	r := calls.Request(time.Now())
	g, err := s.Acquire(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	// leaves a commit unflushed and returns its end in the log.
	unflushed := func() string {
		for range 100 {
			tx, err := pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(ctx, "SET LOCAL synchronous_commit = off")
			if err == nil {
				_, err = tx.Exec(ctx, "UPDATE traceflake_leases SET version = version + 1 WHERE node = $1", int64(g.Node))
			}
			if err == nil {
				err = tx.Commit(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			var lsn string
			var flushed bool
			err = pool.QueryRow(ctx, "SELECT lsn::text, pg_current_wal_flush_lsn() >= lsn FROM pg_current_wal_insert_lsn() AS lsn").Scan(&lsn, &flushed)
			if err != nil {
				t.Fatal(err)
			}
			if !flushed {
				return lsn
			}
		}
		t.Fatal("a commit without synchronous_commit is flushed each time; this test shows nothing")
		return ""
	}
	for range 10 {
		for what, call := range map[string]func() error{
			"get":           func() error { _, err := s.Get(ctx, g.Node); return err },
			"acquire again": func() error { _, err := s.Acquire(ctx, r); return err },
		} {
			lsn := unflushed()
			if err := call(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if !value[bool](t, pool, "SELECT pg_current_wal_flush_lsn() >= $1::text::pg_lsn", lsn) {
				t.Errorf("%s: returned what is not on the disk", what)
			}
		}
	}
}

// If the commit fails after the row was returned, or a trigger of the table swallows the update,
// nothing was granted, and no call says that it wrote.
func TestFailedWrites(t *testing.T) {
	server := servers.PostgresForTest(t)
	ctx, pool := context.Background(), connect(t, server.DSN())
	s := created(t, pool, few)
	now := time.Now()
	g, err := s.Acquire(ctx, calls.Request(now))
	if err != nil {
		t.Fatal(err)
	}
	for name, trigger := range map[string][2]string{
		"fails":    {"CONSTRAINT TRIGGER fails AFTER UPDATE ON traceflake_leases DEFERRABLE INITIALLY DEFERRED", "RAISE 'the commit fails'"},
		"swallows": {"TRIGGER swallows BEFORE UPDATE ON traceflake_leases", "RETURN NULL"},
	} {
		execute(t, pool, "CREATE FUNCTION "+name+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+trigger[1]+"; END $$")
		execute(t, pool, "CREATE "+trigger[0]+" FOR EACH ROW EXECUTE FUNCTION "+name+"()")
		for call, write := range map[string]func() error{
			"acquire": func() error { _, err := s.Acquire(ctx, calls.Request(now)); return err },
			"renew": func() error {
				_, err := s.Renew(ctx, g, calls.Renewal(lease.NewNonce(), g.End.Add(time.Minute)))
				return err
			},
			"release": func() error { return s.Release(ctx, g, lease.NewNonce(), now) },
			"raise":   func() error { _, err := s.Raise(ctx, now.Add(time.Hour)); return err },
		} {
			if write() == nil {
				t.Errorf("%s, %s: no error", name, call)
			}
		}
		if blocks, err := s.List(ctx); err != nil || len(blocks) != 1 || blocks[0].Version != g.Version {
			t.Errorf("%s: list: %v, %v", name, blocks, err)
		}
		execute(t, pool, "DROP FUNCTION "+name+" CASCADE")
	}
}

// While the synchronous standby is away a commit waits for it. If that wait is
// cancelled, the server commits with a warning: nothing is granted that a
// failover could forget, and the block tells what was written once the standby
// is back. No setting of the server hides the warning.
func TestCancelledWaitForTheStandby(t *testing.T) {
	for _, c := range []struct {
		name, setting string
		severity      string
	}{
		{"default settings", "client_min_messages = notice", "WARNING"},
		{"without warnings", "client_min_messages = error", "WARNING"},
		// The engine of the tests speaks English only. A relay that translates the severity stands in
		// for lc_messages.
		{"severity in German", "client_min_messages = notice", "WARNUNG"},
	} {
		t.Run(c.name, func(t *testing.T) { cancelledWait(t, c.setting, c.severity) })
	}
}

func cancelledWait(t *testing.T, setting, severity string) {
	server := servers.PostgresForTest(t)
	ctx, admin := context.Background(), connect(t, server.DSN())
	execute(t, admin, "ALTER DATABASE "+value[string](t, admin, "SELECT quote_ident(current_database())")+" SET "+setting)
	execute(t, admin, "CREATE SCHEMA another")
	var warnings atomic.Int64
	relay, dsn := relayed(t, server.DSN())
	relay.Change(func(b []byte) []byte {
		warnings.Add(int64(bytes.Count(b, []byte("SWARNING\x00"))))
		return bytes.ReplaceAll(b, []byte("SWARNING\x00"), []byte("S"+severity+"\x00"))
	})
	s := created(t, connectWith(t, dsn, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["application_name"] = "waits"
	}), few)
	acquire := func() (lease.Grant, error) {
		return s.Acquire(ctx, calls.Request(time.Now()))
	}
	g, err := acquire()
	if err != nil {
		t.Fatal(err)
	}
	standby := func(name string) {
		execute(t, admin, "ALTER SYSTEM SET synchronous_standby_names = '"+name+"'")
		execute(t, admin, "SELECT pg_reload_conf()")
		for deadline := time.Now().Add(10 * time.Second); value[string](t, admin, "SHOW synchronous_standby_names") != name; {
			if time.Now().After(deadline) {
				t.Fatalf("synchronous_standby_names is not %q", name)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	standby("absent")
	defer standby("")
	cancelled := func(call func() error) error {
		done := make(chan error, 1)
		go func() { done <- call() }()
		for deadline := time.After(20 * time.Second); ; {
			select {
			case err := <-done:
				return err
			case <-deadline:
				t.Fatal("no call waits for the standby")
			case <-time.After(10 * time.Millisecond):
				execute(t, admin, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
					WHERE application_name = 'waits' AND wait_event = 'SyncRep'`)
			}
		}
	}
	next := lease.NewNonce()
	later := driver.NodeRange{First: 0, Nodes: 8, BlockSize: 8}
	for what, call := range map[string]func() error{
		"acquire":    func() error { _, err := acquire(); return err },
		"renew":      func() error { _, err := s.Renew(ctx, g, calls.Renewal(next, g.End.Add(time.Minute))); return err },
		"get":        func() error { _, err := s.Get(ctx, g.Node); return err },
		"add secret": func() error { return s.AddSecret(ctx, "0123456789abcdef") },
		"create": func() error {
			pool := connectWith(t, dsn, func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["application_name"], c.ConnConfig.RuntimeParams["search_path"] = "waits", "another"
			})
			d, err := driver.NewDescription(leasetest.Nodes(later))
			if err != nil {
				return err
			}
			return open(t, pool).Create(ctx, d)
		},
	} {
		wantError(t, what, cancelled(call), nil, "unknown")
	}
	if warnings.Load() == 0 {
		t.Error("the server sent no warning through the relay")
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err = s.Get(short, g.Node)
	wantError(t, "get while the standby is away", err, context.DeadlineExceeded)

	standby("")
	if got, err := s.Get(ctx, g.Node); err != nil || got.Nonce != next || got.Version != g.Version+1 {
		t.Errorf("with the standby: %+v, %v; want the renewal as %s", got, err, next)
	}
}
