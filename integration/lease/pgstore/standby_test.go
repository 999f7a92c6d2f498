package pgstore

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/driver"
)

// While the synchronous standby is down, a commit waits for it. If that wait is cancelled, the
// server commits with a warning: the store returns nothing that a failover could forget, and shows
// the write once the standby is back. No setting or language of the server hides the warning; the
// tests' engine has only English, so a relay translates its severity.
func TestCancelledWaitForTheStandby(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	ctx, admin := t.Context(), server.Connect(t)
	set(t, admin, "client_min_messages", "error")
	execute(t, admin, "CREATE SCHEMA another")
	var warnings atomic.Int64
	relay, dsn := relayed(t, server.DSN())
	relay.Change = func(b []byte) []byte {
		warnings.Add(int64(bytes.Count(b, []byte("SWARNING\x00"))))
		return bytes.ReplaceAll(b, []byte("SWARNING\x00"), []byte("SWARNUNG\x00"))
	}
	dsn += "&application_name=waits"
	o := calls.Objects(t, dsn)
	first, err := calls.Write(ctx, o, "page-0000", "first", "")
	if err != nil {
		t.Fatal(err)
	}
	here, err := calls.Prepared(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	standby := func(name string) {
		t.Helper()
		execute(t, admin, "ALTER SYSTEM SET synchronous_standby_names = '"+name+"'")
		execute(t, admin, "SELECT pg_reload_conf()")
	}
	standby("absent")
	defer standby("")
	for { // until commits wait: the server obeys the setting after a moment
		soon, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		_, err := server.Connect(t).Exec(soon, "SELECT pg_logical_emit_message(true, '', '')")
		if cancel(); err != nil {
			break
		}
	}
	for what, call := range map[string]func() (driver.Object, error){
		"read": func() (driver.Object, error) { return o.Read(ctx, "page-0000") },
		"write": func() (driver.Object, error) {
			return o.Write(ctx, "page-0000", []byte("second"), first.Version, here.Place)
		},
		"create": func() (driver.Object, error) {
			return calls.Write(ctx, calls.Objects(t, dsn+"&search_path=another"), "page-0000",
				"first", "")
		},
	} {
		done := make(chan error, 1)
		go func() { _, err := call(); done <- err }()
		for waits := true; waits; {
			select {
			case err := <-done:
				if err == nil || !strings.Contains(err.Error(), "unknown") {
					t.Errorf("%s: %v, want that the outcome is unknown", what, err)
				}
				waits = false
			case <-time.After(10 * time.Millisecond):
				execute(t, admin, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
					WHERE application_name = 'waits' AND wait_event = 'SyncRep'`)
			}
		}
	}
	if warnings.Load() == 0 {
		t.Error("the server sent no warning through the relay")
	}
	standby("")
	if now, err := o.Read(ctx, "page-0000"); err != nil || string(now.Data) != "second" {
		t.Errorf("with the standby: %q, %v; want what was written", now.Data, err)
	}
}
