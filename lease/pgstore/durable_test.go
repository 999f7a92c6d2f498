package pgstore_test

import (
	"testing"

	"github.com/traceflake/traceflake/internal/calls"
)

// Where the role commits without waiting for the disk, the store waits.
func TestSynchronousCommitIsForcedOn(t *testing.T) {
	dsn, admin := newDatabase(t)
	write(t, calls.Objects(t, dsn), "page-0000", "", "")
	// A deferred trigger runs as part of the commit, and sees what decides whether that waits.
	execute(t, admin, `CREATE TABLE commits (setting text);
		CREATE FUNCTION log_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO commits VALUES (current_setting('synchronous_commit'));
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER log_commit AFTER INSERT OR UPDATE ON traceflake_store
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_commit()`)
	for byDefault, want := range map[string]string{"off": "on", "local": "on",
		"remote_apply": "remote_apply"} {
		dsn := dsn + "&synchronous_commit=" + byDefault
		execute(t, connect(t, dsn),
			"UPDATE traceflake_store SET data = data WHERE name = 'page-0000'")
		o := calls.Objects(t, dsn)
		inserted := write(t, o, "page-"+byDefault, "1", "")
		write(t, o, "page-"+byDefault, "2", inserted.Version)
		want := byDefault + " " + want + " " + want
		if got := value[string](t, admin, "SELECT string_agg(setting, ' ') FROM commits"); got !=
			want {
			t.Errorf("an update by another program, an insert and an update were committed with "+
				"synchronous_commit = %s, want %s", got, want)
		}
		execute(t, admin, "TRUNCATE commits")
	}
}

// What Read returns is on the disk, even if the commit that it read had not waited for the disk.
func TestAnswersAreFlushed(t *testing.T) {
	dsn, admin := newDatabase(t)
	o := calls.Objects(t, dsn)
	write(t, o, "page-0000", "1", "")
	for range 100 {
		execute(t, admin, "BEGIN; SET LOCAL synchronous_commit = off; "+
			"UPDATE traceflake_store SET data = data; COMMIT")
		lsn := value[string](t, admin, "SELECT pg_current_wal_insert_lsn()::text")
		flushed := func() bool {
			return value[bool](t, admin, "SELECT pg_current_wal_flush_lsn() >= $1::text::pg_lsn",
				lsn)
		}
		if flushed() { // by chance
			continue
		}
		if _, err := o.Read(t.Context(), "page-0000"); err != nil || !flushed() {
			t.Errorf("Read returned what is not on the disk, or %v", err)
		}
		return
	}
	t.Fatal("a commit without synchronous_commit is flushed each time; this test shows nothing")
}

// If the commit fails after the row was returned, Write returns an error.
func TestFailedCommit(t *testing.T) {
	dsn, admin := newDatabase(t)
	o := calls.Objects(t, dsn)
	written := write(t, o, "page-0000", "1", "")
	execute(t, admin, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE 'the commit fails'; END $$;
		CREATE CONSTRAINT TRIGGER fails AFTER UPDATE ON traceflake_store
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()`)
	_, err := calls.Write(t.Context(), o, "page-0000", "2", written.Version)
	wantError(t, "write", err, nil, "the commit fails")
}
