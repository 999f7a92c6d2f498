package pgstore_test

import (
	"testing"

	"github.com/traceflake/traceflake/lease/pgstore"
)

// Where the database commits without waiting for the disk, the store waits.
func TestSynchronousCommitIsForcedOn(t *testing.T) {
	for byDefault, want := range map[string]string{"off": "on", "local": "on",
		"remote_apply": "remote_apply"} {
		dsn := database(t)
		admin := connect(t, dsn, nil)
		execute(t, admin,
			"ALTER DATABASE "+value[string](t, admin, "SELECT quote_ident(current_database())")+
				" SET synchronous_commit = "+byDefault)
		o := pgstore.Objects(t, dsn)
		written, err := o.Write(t.Context(), "page-0000", []byte("1"), "")
		if err != nil {
			t.Fatal(err)
		}
		// A deferred trigger runs as part of the commit, and sees what decides whether that waits.
		for _, sql := range []string{
			"CREATE TABLE commits (setting text)",
			`CREATE FUNCTION log_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				INSERT INTO commits VALUES (current_setting('synchronous_commit'));
				RETURN NULL;
			END $$`,
			`CREATE CONSTRAINT TRIGGER log_commit AFTER INSERT OR UPDATE ON traceflake_store
				DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_commit()`,
		} {
			execute(t, admin, sql)
		}
		logged := func(what, want string) {
			t.Helper()
			if got := value[string](t, admin,
				"SELECT string_agg(DISTINCT setting, ',') FROM commits"); got != want {
				t.Errorf("%s: %s committed with synchronous_commit = %s, want %s", byDefault, what,
					got, want)
			}
			execute(t, admin, "TRUNCATE commits")
		}
		sessions := connect(t, dsn, nil) // with the database's default
		execute(t, sessions, "UPDATE traceflake_store SET data = data")
		logged("a plain update", byDefault)
		if _, err := o.Write(t.Context(), "page-0000", []byte("2"), written.Version); err != nil {
			t.Fatal(err)
		}
		logged("an update", want)
		if _, err := o.Write(t.Context(), "page-0001", []byte("1"), ""); err != nil {
			t.Fatal(err)
		}
		logged("an insert", want)
	}
}

// What Read returns is on the disk, even if the commit that it read had not waited for the disk.
func TestAnswersAreFlushed(t *testing.T) {
	dsn := database(t)
	o, admin := pgstore.Objects(t, dsn), connect(t, dsn, nil)
	if _, err := o.Write(t.Context(), "page-0000", []byte("1"), ""); err != nil {
		t.Fatal(err)
	}
	const end = "SELECT pg_current_wal_insert_lsn()::text"
	for range 100 {
		execute(t, admin, "BEGIN; SET LOCAL synchronous_commit = off; "+
			"UPDATE traceflake_store SET data = data; COMMIT")
		lsn := value[string](t, admin, end)
		flushed := func() bool {
			return value[bool](t, admin, "SELECT pg_current_wal_flush_lsn() >= $1::text::pg_lsn",
				lsn)
		}
		if flushed() { // by chance
			continue
		}
		if _, err := o.Read(t.Context(), "page-0000"); err != nil {
			t.Fatal(err)
		}
		if !flushed() {
			t.Error("Read returned what is not on the disk")
		}
		return
	}
	t.Fatal("a commit without synchronous_commit is flushed each time; this test shows nothing")
}

// If the commit fails after the row was returned, or a trigger of the table swallows the update,
// nothing was written, and Write says so.
func TestFailedWrites(t *testing.T) {
	dsn := database(t)
	o, admin := pgstore.Objects(t, dsn), connect(t, dsn, nil)
	written, err := o.Write(t.Context(), "page-0000", []byte("1"), "")
	if err != nil {
		t.Fatal(err)
	}
	for body, trigger := range map[string]string{
		"RAISE 'the commit fails'": "CONSTRAINT TRIGGER fails AFTER UPDATE ON traceflake_store " +
			"DEFERRABLE INITIALLY DEFERRED",
		"RETURN NULL": "TRIGGER swallows BEFORE UPDATE ON traceflake_store",
	} {
		execute(t, admin, "CREATE FUNCTION wrong() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+
			body+"; END $$")
		execute(t, admin, "CREATE "+trigger+" FOR EACH ROW EXECUTE FUNCTION wrong()")
		_, err := o.Write(t.Context(), "page-0000", []byte("2"), written.Version)
		if now, failed := o.Read(t.Context(), "page-0000"); err == nil || failed != nil ||
			now.Version != written.Version {
			t.Errorf("%s: %v; read: %+v, %v", body, err, now, failed)
		}
		execute(t, admin, "DROP FUNCTION wrong CASCADE")
	}
}
