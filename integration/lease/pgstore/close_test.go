//go:build linux

package pgstore

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// Close obeys its context although the server does not respond, with a call that was cancelled and
// one that is still waiting.
func TestCloseWithoutAResponse(t *testing.T) {
	t.Run("stopped server", func(t *testing.T) {
		if !ownServer {
			t.Skip("the server is not of this test")
		}
		server := servers.PostgresForTest(t)
		backend := value[int](t, server.Connect(t), "SELECT pg_backend_pid()")
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", backend))
		if err != nil {
			t.Fatal(err)
		}
		postmaster, err := strconv.Atoi(string(bytes.Fields(status[bytes.LastIndexByte(status, ')')+1:])[1]))
		if err != nil {
			t.Fatal(err)
		}
		closeInTime(t, server, server.DSN(), func(session int) {
			for _, pid := range []int{session, postmaster} {
				if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
			}
		})
	})
	t.Run("silent network", func(t *testing.T) {
		server := servers.PostgresForTest(t)
		relay, dsn := relayed(t, server.DSN())
		closeInTime(t, server, dsn, func(int) { relay.Stall() })
	})
}

func closeInTime(t *testing.T, server *servers.PostgresServer, dsn string, silence func(session int)) {
	t.Helper()
	storage(dsn).Create(t, leasetest.Nodes(few))
	s := servers.OpenStore(t, dsn)
	ctx := context.Background()
	g, err := s.Acquire(ctx, calls.Request(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	session := value[int](t, server.Connect(t), "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%granted_until%' LIMIT 1")
	silence(session)
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = s.Get(short, g.Node)
	wantError(t, "get", err, context.DeadlineExceeded)
	waiting := make(chan struct{})
	go func() {
		long, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, _ = s.Get(long, g.Node)
		close(waiting)
	}()
	time.Sleep(200 * time.Millisecond)
	end, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	began := time.Now()
	wantError(t, "close", s.Close(end), context.DeadlineExceeded)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("close took %s, want at most 2 s", took)
	}
	<-waiting
}
