package pgstore

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

// While the synchronous standby is down, a commit waits for it. If that wait is cancelled, the
// server commits with a warning: nothing is granted that a failover could forget, and the block
// shows the write once the standby is back. No setting or language of the server hides the warning;
// the tests' engine has only English, so a relay translates its severity.
func TestCancelledWaitForTheStandby(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	ctx, admin := context.Background(), server.Connect(t)
	execute(t, admin,
		"ALTER DATABASE "+value[string](t, admin, "SELECT quote_ident(current_database())")+" SET "+
			"client_min_messages = error")
	execute(t, admin, "CREATE SCHEMA another")
	var warnings atomic.Int64
	relay, dsn := relayed(t, server.DSN())
	relay.Change = func(b []byte) []byte {
		warnings.Add(int64(bytes.Count(b, []byte("SWARNING\x00"))))
		return bytes.ReplaceAll(b, []byte("SWARNING\x00"), []byte("SWARNUNG\x00"))
	}
	dsn += "&application_name=waits"
	processes.Store(dsn).Create(t, few)
	s := processes.Store(dsn).Client(t)
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
		for deadline := time.Now().Add(10 * time.Second); value[string](t, admin,
			"SHOW synchronous_standby_names") != name; {
			if time.Now().After(deadline) {
				t.Fatalf("synchronous_standby_names is not %q", name)
			}
			time.Sleep(10 * time.Millisecond)
		}
		for name != "" { // until commits wait: the server begins to after it shows the setting
			soon, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			_, err := server.Connect(t).Exec(soon, "SELECT pg_logical_emit_message(true, '', '')")
			if cancel(); err != nil {
				break
			}
		}
	}
	// A renewal reads the row before commits wait, and writes it after that.
	locked, next, renewed := server.Connect(t), calls.Renewal(g), make(chan error, 1)
	execute(t, locked,
		"BEGIN; SELECT FROM traceflake_store WHERE name LIKE 'page-%' FOR NO KEY UPDATE")
	go func() {
		_, err := s.Renew(ctx, g, next)
		renewed <- err
	}()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if value[bool](t, admin, `SELECT count(*) > 0 FROM pg_stat_activity
			WHERE application_name = 'waits' AND wait_event_type = 'Lock'`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the renewal does not wait for the locked row")
		}
	}
	standby("absent")
	defer standby("")
	execute(t, locked, "ROLLBACK")
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
	get := func() error { _, err := s.Get(ctx, g); return err }
	wantError(t, "renew", cancelled(func() error { return <-renewed }), nil, "unknown")
	for began := time.Now(); cancelled(get) == nil; { // the server obeys the setting after a moment
		if time.Since(began) > 10*time.Second {
			t.Fatal("no commit waits for the standby")
		}
	}
	for what, call := range map[string]func() error{
		"acquire":    func() error { _, err := acquire(); return err },
		"get":        get,
		"add secret": func() error { return s.AddSecret(ctx, calls.ID, "0123456789abcdef") },
		"create": func() error {
			d, err := stores.NewDescription(few)
			return errors.Join(err,
				processes.Store(dsn+"&search_path=another").Client(t).Create(ctx, d))
		},
	} {
		wantError(t, what, cancelled(call), nil, "unknown")
	}
	if warnings.Load() == 0 {
		t.Error("the server sent no warning through the relay")
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err = s.Get(short, g)
	wantError(t, "get while the standby is down", err, context.DeadlineExceeded)

	standby("")
	if got, err := s.Get(ctx, g); err != nil || got.Nonce != next.Nonce ||
		got.Version != g.Version+1 {
		t.Errorf("with the standby: %+v, %v; want the renewal as %s", got, err, next.Nonce)
	}
}
