package calls

import (
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

// Restored restores a store, which it creates, from one backup again and again, without its place
// showing it. Processes are then granted the same seconds of the same nodes again, which shows that
// the check can fail, but not in a history that was begun after the restore.
func Restored(tb testing.TB, open func() (stores.Store, error)) {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	client := func() stores.Store {
		s, err := open()
		must(err)
		tb.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := client()
	first, err := s.Create(tb.Context(), lease.Description{Nodes: 8}, Secret())
	must(err)
	objects := s.(interface{ Objects() driver.Objects }).Objects()
	backup := map[string]driver.Object{}
	for _, name := range []string{"config", "page-0000"} {
		backup[name], err = objects.Read(tb.Context(), name)
		must(err)
	}
	restore := func() {
		for name, o := range backup {
			now, err := objects.Read(tb.Context(), name)
			must(err)
			if string(now.Data) != string(o.Data) {
				here, err := objects.Read(tb.Context(), "config")
				must(err)
				_, err = objects.Write(tb.Context(), name, o.Data, now.Version, here.Place)
				must(err)
			}
		}
	}

	var granted []lease.Grant
	acquire := func() { // the store's only block
		s := client()
		d, err := s.Describe(tb.Context())
		must(err)
		g, err := s.Acquire(tb.Context(), Request(d.ID, time.Now()))
		must(err)
		granted = append(granted, g)
	}
	equal := func() (n int) { // pairs with a second of a node in common, under one key
		for i, a := range granted {
			for _, b := range granted[:i] {
				if a.Store == b.Store && a.Node == b.Node && a.Start.Before(b.End) &&
					b.Start.Before(a.End) {
					n++
				}
			}
		}
		return n
	}

	acquire() // which the backup does not have
	restore()
	if acquire(); equal() == 0 {
		tb.Error("a process that reached the restored store is granted nothing twice")
	}
	granted = granted[:1]
	for range 2 {
		restore()
		_, err := s.Begin(tb.Context(), Begin(first, lease.Contradicted))
		must(err)
		acquire()
	}
	if n := equal(); n > 0 {
		tb.Errorf("%d pairs of equal grants in three histories", n)
	}
	for _, g := range granted[:len(granted)-1] {
		if g, err := s.Renew(tb.Context(), g, Renewal(g)); err == nil {
			tb.Errorf("a lease of an earlier history is renewed: %+v", g)
		}
	}
}
