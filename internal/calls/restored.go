package calls

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

// Restored restores a store, which it creates, from one backup again and again. Processes that
// reach it before its secret is replaced are granted the same seconds of the same nodes, which
// shows that the check can fail. After a replacement they are not, under one secret. Leases of
// earlier histories are not renewed. The engine's tests interrupt operators, and let them meet.
func Restored(tb testing.TB, open func() (stores.Store, error)) {
	tb.Helper()
	r := &restored{TB: tb, open: open}
	s := r.client()
	r.must(s.Create(tb.Context(), lease.Description{ID: ID, Nodes: 8,
		LongestTTL: lease.DefaultTTL}))
	objects := s.(interface{ Objects() driver.Objects }).Objects()
	backup, err := objects.List(tb.Context())
	r.must(err)
	for name := range backup {
		backup[name], err = objects.Read(tb.Context(), name)
		r.must(err)
	}
	restore := func() {
		for name, o := range backup {
			now, err := objects.Read(tb.Context(), name)
			r.must(err)
			if string(now.Data) != string(o.Data) {
				_, err = objects.Write(tb.Context(), name, o.Data, now.Version)
				r.must(err)
			}
		}
	}

	r.acquire() // which the backup does not know
	restore()
	if r.acquire(); r.equal() == 0 {
		tb.Error("a process that reached the restored store is granted nothing twice")
	}
	r.granted = r.granted[:1]
	for _, digit := range []string{"1", "2"} {
		restore()
		id := strings.Repeat(digit, len(ID))
		r.must(s.Replace(tb.Context(), ID, id, id[:16]))
		r.acquire()
	}
	if n := r.equal(); n > 0 {
		tb.Errorf("%d pairs of equal grants in three histories", n)
	}
	for _, g := range r.granted[:len(r.granted)-1] {
		if _, err := s.Renew(tb.Context(), g.Grant, Renewal(g.Grant)); !errors.Is(err,
			lease.ErrReplaced) {
			tb.Errorf("renew %+v: %v, want %v", g.Grant, err, lease.ErrReplaced)
		}
	}
}

type restored struct {
	testing.TB
	open    func() (stores.Store, error)
	granted []granted
}

// granted is a grant under a secret.
type granted struct {
	lease.Grant
	secret string
}

func (r *restored) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *restored) client() stores.Store {
	r.Helper()
	s, err := r.open()
	r.must(err)
	r.Cleanup(func() { _ = s.Close() })
	return s
}

// acquire acquires the store's only block.
func (r *restored) acquire() {
	r.Helper()
	s := r.client()
	d, err := s.Describe(r.Context())
	r.must(err)
	secret := fmt.Sprint(d.Secrets)
	if s.KeepsSecret() {
		k, err := s.Secrets(r.Context())
		r.must(err)
		secret = lease.Description{}.Fingerprint(k.Codec())
	}
	request := Request(time.Now())
	request.Store = d.ID
	g, err := s.Acquire(r.Context(), request)
	r.must(err)
	r.granted = append(r.granted, granted{g, secret})
}

// equal returns how many pairs of grants have a second of a node in common under one secret.
func (r *restored) equal() (n int) {
	for i, a := range r.granted {
		for _, b := range r.granted[:i] {
			if a.secret == b.secret && a.Node == b.Node && a.Start.Before(b.End) &&
				b.Start.Before(a.End) {
				n++
			}
		}
	}
	return n
}
