//go:build unix

package pgstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/network"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// cluster is a primary with an asynchronous standby.
type cluster struct {
	tb               testing.TB
	primary, standby *servers.PostgresInstance
	replication      *network.Proxy
}

func newCluster(tb testing.TB) *cluster {
	tb.Helper()
	c := &cluster{tb: tb, primary: child.ForTest(tb, servers.StartPostgres)}
	if err := c.follow(); err != nil {
		tb.Fatal(err)
	}
	return c
}

// follow gives the primary another standby.
func (c *cluster) follow() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.replication = network.NewProxy(c.tb, c.primary.Address)
	if c.standby, err = c.primary.Standby(ctx, c.replication.Address()); err == nil {
		c.tb.Cleanup(func() { _ = c.standby.Close() })
	}
	return err
}

// failover promotes the standby, which lacks what was committed while the network was cut. It
// returns the old primary, which still runs.
func (c *cluster) failover(cut func()) (old *servers.PostgresInstance, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.replication.Cut()
	cut()
	had, err := stored(ctx, c.primary)
	has, failed := stored(ctx, c.standby)
	if had == has {
		failed = errors.Join(failed, errors.New("the standby lacks nothing"))
	}
	old, c.primary = c.primary, c.standby
	return old, errors.Join(err, failed, c.primary.Promote(ctx))
}

// stored returns a hash of the pages at a server.
func stored(ctx context.Context, s *servers.PostgresInstance) (sum string, err error) {
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, "SELECT md5(string_agg(encode(data, 'hex'), ' ' ORDER BY name)) "+
		"FROM traceflake_store").Scan(&sum)
	return sum, err
}

// An asynchronous failover loses grants, and the old primary still serves a half of the processes:
// no two IDs are equal, without fencing and without an operator. In the end all processes lease in
// the history that one of them has begun at the new primary.
func TestFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	const ttl = 2 * time.Second
	c := newCluster(t)
	processes.Create(t, c.primary.DSN(), lease.Description{Nodes: 96})
	stays, at := relayed(t, c.primary.DSN())
	moves, elsewhere := relayed(t, c.primary.DSN())
	f := &fleet{tb: t, ids: map[randflake.ID]bool{}, used: map[randflake.Parts]string{},
		last: map[*lease.Keeper]string{}}
	end := make(chan struct{})
	var running sync.WaitGroup
	defer running.Wait()
	defer close(end)
	start := func(url string) (all []*lease.Keeper) {
		for range 6 {
			k, err := lease.Start(t.Context(), calls.Open(t, url),
				lease.FixedSecrets(calls.Secrets()), lease.WithTTL(ttl),
				lease.WithErrorHandler(func(err error) { t.Log(err) }))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, k)
			running.Go(func() { f.generate(k, end); k.Close() })
		}
		return all
	}
	staying, moving := start(at), start(elsewhere)
	all := append(staying, moving...)
	any := func(string) bool { return true }
	f.wait(all, any)
	first := all[0].Histories()[0].ID
	old := func(history string) bool { return history == first }
	other := func(history string) bool { return history != first }

	former, err := c.failover(func() { time.Sleep(ttl); f.wait(all, old) })
	if err != nil {
		t.Fatal(err)
	}
	redirect(moves, c.primary)
	f.wait(moving, other)
	f.wait(staying, old)
	if err := former.Stop(); err != nil {
		t.Fatal(err)
	}
	redirect(stays, c.primary)
	f.wait(all, other)
	for _, k := range all {
		if now := k.Histories(); len(now) != 2 || now[0] != all[0].Histories()[0] ||
			now[0].Reason != lease.Moved {
			t.Errorf("a process has the histories %v", now)
		}
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	t.Logf("%d IDs, none of them equal; under one key %d would be", len(f.ids), f.repeated)
}

// redirect ends the connections through a proxy, which from now on leads to another server.
func redirect(p *network.Proxy, to *servers.PostgresInstance) {
	p.Serve(to.Address)
	p.Cut()
	p.Mend()
}

// fleet collects the IDs of Keepers.
type fleet struct {
	tb testing.TB

	mu       sync.Mutex
	ids      map[randflake.ID]bool
	used     map[randflake.Parts]string // the history in which they were used first
	repeated int                        // in other histories
	last     map[*lease.Keeper]string   // the history of the last ID
}

// generate generates IDs with a Keeper until end.
func (f *fleet) generate(k *lease.Keeper, end <-chan struct{}) {
	ids := make([]randflake.ID, 64)
	for {
		select {
		case <-end:
			return
		case <-time.After(20 * time.Millisecond):
		}
		if n, second, _ := k.Fill(ids); n > 0 {
			f.mark(k, ids[:n], second)
		}
	}
}

func (f *fleet) mark(k *lease.Keeper, ids []randflake.ID, second time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		history, parts, err := processes.HistoryOf(k, id, second)
		switch used := f.used[parts]; {
		case err != nil:
			f.tb.Error(err)
		case f.ids[id]:
			f.tb.Errorf("%+v was generated twice, in the histories %s and %s", parts, used, history)
		case used == "":
			f.used[parts] = history
		case used != history:
			f.repeated++
		}
		f.ids[id], f.last[k] = true, history
	}
}

// wait waits until Keepers have generated further IDs, in a history that is wanted.
func (f *fleet) wait(all []*lease.Keeper, wanted func(history string) bool) {
	f.tb.Helper()
	f.mu.Lock()
	clear(f.last)
	f.mu.Unlock()
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		missing := 0
		f.mu.Lock()
		for _, k := range all {
			if history := f.last[k]; history == "" || !wanted(history) {
				missing++
			}
		}
		f.mu.Unlock()
		if missing == 0 {
			return
		}
		if time.Now().After(end) {
			f.tb.Fatalf("%d of %d processes generate no IDs there", missing, len(all))
		}
	}
}
