package setup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/setup"
)

// Shutdown ends within its two seconds although the store does not respond and the context is over:
// of a process that waits, of one that is renewing its lease, and of one that is connecting.
func TestShutdownWithoutAResponse(t *testing.T) {
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			b := start(t, "shutdown")
			c := fleet(t, b.url(b.address))
			servers.CreateStore(t, c.Store, codec(t, c))
			t.Run("silent network", func(t *testing.T) {
				relay := leasetest.NewCutter(t, b.address)
				c := c
				c.Store = b.url(relay.Address())
				shutdownInTime(t, c, relay.Stall)
			})
			t.Run("stopped server", func(t *testing.T) {
				if b.signal == nil {
					t.Skip("no signal reaches this server")
				}
				shutdownInTime(t, c, func() {
					if err := b.signal(syscall.SIGSTOP); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = b.signal(syscall.SIGCONT) })
				})
			})
		})
	}
}

func shutdownInTime(t *testing.T, c setup.Config, silence func()) {
	t.Helper()
	renewing := c
	renewing.TTL = 2 * time.Second
	processes := map[string]*setup.IDs{"waiting": opens(t, c), "renewing": opens(t, renewing)}
	for name, ids := range processes {
		if err := ids.Ready(canceled()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	silence()
	c.Strict = false // which waits for the store longer
	processes["connecting"] = opens(t, c)
	time.Sleep(500 * time.Millisecond)
	var all sync.WaitGroup
	for name, ids := range processes {
		all.Go(func() {
			began := time.Now()
			err := ids.Shutdown(canceled())
			took := time.Since(began)
			t.Logf("%s: %s: %v", name, took.Round(time.Millisecond), err)
			if took > 3*time.Second {
				t.Errorf("%s: Shutdown took %s, want at most 3 s", name, took)
			}
			if name == "waiting" && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: the store responded: %v", name, err)
			}
		})
	}
	all.Wait()
}

// postgresSignal returns a function that sends a signal to every process of
// the server, or nil if the test cannot.
func postgresSignal(t *testing.T, server *servers.PostgresServer) func(syscall.Signal) error {
	t.Helper()
	conn := server.Connect(t)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", conn.PgConn().PID())) // of Linux
	if err != nil || os.Getenv("TRACEFLAKE_POSTGRES_DSN") != "" {
		return nil
	}
	postmaster, err := strconv.Atoi(string(bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])[1]))
	if err != nil {
		t.Fatal(err)
	}
	var stopped []int
	return func(signal syscall.Signal) error {
		if signal == syscall.SIGSTOP {
			rows, err := conn.Query(t.Context(), "SELECT pid FROM pg_stat_activity")
			if err != nil {
				return err
			}
			if stopped, err = pgx.CollectRows(rows, pgx.RowTo[int]); err != nil {
				return err
			}
			stopped = append(stopped, postmaster)
		}
		var errs []error
		for _, pid := range stopped {
			errs = append(errs, syscall.Kill(pid, signal))
		}
		return errors.Join(errs...)
	}
}
