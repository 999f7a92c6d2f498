package pgstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
)

// Where the database commits without waiting for the disk, the store waits.
func TestSynchronousCommitIsForcedOn(t *testing.T) {
	for _, c := range []struct{ byDefault, want string }{
		{"off", "on"},
		{"local", "on"},
		{"remote_apply", "remote_apply"},
	} {
		t.Run(c.byDefault, func(t *testing.T) {
			dsn := database(t)
			setup := connect(t, dsn, nil)
			execute(t, setup,
				"ALTER DATABASE "+value[string](t, setup, "SELECT quote_ident(current_database())")+
					" SET synchronous_commit = "+c.byDefault)
			pool := connect(t, dsn, nil) // new sessions
			if got := value[string](t, pool, "SHOW synchronous_commit"); got != c.byDefault {
				t.Fatalf("synchronous_commit is %s", got)
			}
			s := created(t, pool)
			ctx, now := context.Background(), time.Now()
			g, err := s.Acquire(ctx, calls.Request(now))
			if err != nil {
				t.Fatal(err)
			}

			// A deferred trigger runs as part of the commit, and sees what
			// decides whether that waits.
			execute(t, pool, "CREATE TABLE commits (setting text)")
			execute(t, pool, `CREATE FUNCTION log_commit() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN
					INSERT INTO commits VALUES (current_setting('synchronous_commit'));
					RETURN NULL;
				END $$`)
			execute(t, pool, `CREATE CONSTRAINT TRIGGER log_commit AFTER UPDATE ON traceflake_store
				DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_commit()`)
			logged := func(what, want string, write func() error) {
				t.Helper()
				execute(t, pool, "TRUNCATE commits")
				if err := write(); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if got := value[string](t, pool,
					"SELECT string_agg(DISTINCT setting, ',') FROM commits"); got != want {
					t.Errorf("%s: committed with synchronous_commit = %s, want %s", what, got, want)
				}
			}
			logged("a plain update", c.byDefault, func() error {
				_, err := pool.Exec(ctx,
					"UPDATE traceflake_store SET data = data WHERE name = 'page-0000'")
				return err
			})
			logged("renew", c.want, func() (err error) {
				g, err = s.Renew(ctx, g, calls.Renewal(g))
				return err
			})
			logged("release", c.want,
				func() error { return s.Release(ctx, g, lease.NewNonce(), now) })
			logged("acquire", c.want, func() error {
				_, err := s.Acquire(ctx, calls.Request(now))
				return err
			})
			logged("add secret", c.want, func() error {
				return s.AddSecret(ctx, calls.ID, "0123456789abcdef")
			})
			if got := value[string](t, pool, "SHOW synchronous_commit"); got != c.byDefault {
				t.Errorf("the session is left with synchronous_commit = %s", got)
			}
		})
	}
}

// What a call returns is on the disk, even if the call only read, and even if the commit that it
// read had not waited for the disk.
func TestAnswersAreFlushed(t *testing.T) {
	dsn := database(t)
	ctx, pool := context.Background(), connect(t, dsn, nil)
	s := created(t, pool)
	r := calls.Request(time.Now())
	g, err := s.Acquire(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	// leaves a commit unflushed and returns its end in the log.
	unflushed := func() string {
		for range 100 {
			execute(t, pool, "BEGIN; SET LOCAL synchronous_commit = off; "+
				"UPDATE traceflake_store SET data = data WHERE name = 'page-0000'; "+
				"COMMIT")
			var lsn string
			var flushed bool
			err := pool.QueryRow(ctx, "SELECT lsn::text, pg_current_wal_flush_lsn() >= lsn FROM "+
				"pg_current_wal_insert_lsn() AS lsn").Scan(&lsn, &flushed)
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
			"get":           func() error { _, err := s.Get(ctx, g); return err },
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
	dsn := database(t)
	ctx, pool := context.Background(), connect(t, dsn, nil)
	s := created(t, pool)
	now := time.Now()
	g, err := s.Acquire(ctx, calls.Request(now))
	if err != nil {
		t.Fatal(err)
	}
	for name, trigger := range map[string][2]string{
		"fails": {"CONSTRAINT TRIGGER fails AFTER UPDATE ON traceflake_store DEFERRABLE " +
			"INITIALLY DEFERRED", "RAISE 'the commit fails'"},
		"swallows": {"TRIGGER swallows BEFORE UPDATE ON traceflake_store", "RETURN NULL"},
	} {
		execute(t, pool, "CREATE FUNCTION "+name+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+
			trigger[1]+"; END $$")
		execute(t, pool, "CREATE "+trigger[0]+" FOR EACH ROW EXECUTE FUNCTION "+name+"()")
		for call, write := range map[string]func() error{
			"acquire": func() error { _, err := s.Acquire(ctx, calls.Request(now)); return err },
			"renew": func() error {
				_, err := s.Renew(ctx, g, calls.Renewal(g))
				return err
			},
			"release": func() error { return s.Release(ctx, g, lease.NewNonce(), now) },
		} {
			began := time.Now()
			if err := write(); err == nil || time.Since(began) > 5*time.Second {
				t.Errorf("%s, %s: %v after %s", name, call, err, time.Since(began))
			}
		}
		if blocks, err := s.List(ctx); err != nil || len(blocks) != 1 ||
			blocks[0].Version != g.Version {
			t.Errorf("%s: list: %v, %v", name, blocks, err)
		}
		execute(t, pool, "DROP FUNCTION "+name+" CASCADE")
	}
}
