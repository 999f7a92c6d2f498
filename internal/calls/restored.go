package calls

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

// Restored restores a store, which it creates, from one backup again and again. Processes that
// reach it before its secret is replaced are granted the same seconds of the same nodes, which
// shows that the check can fail. After a replacement they are not, under one secret, also if it was
// interrupted at each write, or two operators ran it at once. Leases of earlier histories are not
// renewed.
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
	for _, replace := range []func(){
		func() { r.must(s.Replace(tb.Context(), ID, r.next(), r.next()[:16])) },
		func() { r.atOnce() },
		func() { r.interrupted(objects) },
	} {
		restore()
		replace()
		r.acquire()
	}
	if n := r.equal(); n > 0 {
		tb.Errorf("%d pairs of equal grants in four histories", n)
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
	drawn   int // IDs of histories and fingerprints of secrets
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

// next returns another ID.
func (r *restored) next() string {
	r.drawn++
	return strings.Repeat(fmt.Sprint(r.drawn), len(ID))[:len(ID)]
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

// atOnce has two operators replace the secret at once.
func (r *restored) atOnce() {
	r.Helper()
	var errs [2]error
	var all sync.WaitGroup
	for i := range errs {
		s, id := r.client(), r.next()
		all.Go(func() { errs[i] = s.Replace(r.Context(), ID, id, id[:16]) })
	}
	all.Wait()
	if joined := errors.Join(errs[:]...); joined != nil && (errs[0] != nil && errs[1] != nil ||
		!errors.Is(joined, lease.ErrReplaced)) {
		r.Errorf("two operators at once: %v", errs)
	}
}

// interrupted has an operator replace the secret, who is interrupted at each write.
func (r *restored) interrupted(objects driver.Objects) {
	r.Helper()
	s, id := r.client(), r.next()
	for writes := 0; !s.KeepsSecret(); writes++ {
		broken, err := stores.New(&breaking{objects, writes},
			driver.Layout{Name: "broken", BlocksPerPage: 1})
		r.must(err)
		if err := broken.Replace(r.Context(), ID, id, id[:16]); err == nil {
			return
		} else if writes == 10 {
			r.Fatal(err)
		}
	}
	r.must(s.Replace(r.Context(), ID, id, id[:16]))
}

// breaking is a connection that is lost after some writes.
type breaking struct {
	driver.Objects
	writes int
}

func (b *breaking) Write(ctx context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	if b.writes--; b.writes < 0 {
		return driver.Object{}, errors.New("the connection is lost")
	}
	return b.Objects.Write(ctx, name, data, version)
}
