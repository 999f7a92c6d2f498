package calls

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// Restored restores a store, which it creates, from one backup again and again. Processes that
// reach it before its secret is replaced generate equal IDs, which shows that the check can fail.
// After that they generate none, although those of the forgotten leases go on, also if the
// replacement was interrupted at each write, or two operators ran it at once.
func Restored(tb testing.TB, open func() (stores.Store, error)) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("takes ten seconds")
	}
	r := &restored{TB: tb, open: open}
	r.secrets = append(r.secrets, r.codec("0123456789abcdef"))
	s := r.client()
	d := lease.Description{ID: ID, Nodes: 8, LongestTTL: lease.DefaultTTL}
	if !s.KeepsSecret() {
		d.Secrets = []string{d.Fingerprint(r.secrets[0])}
	}
	r.must(s.Create(tb.Context(), d))
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

	keepers := []*lease.Keeper{r.keeper()} // which the backup does not know
	restore()
	keepers = append(keepers, r.keeper())
	if r.equal(keepers) == 0 {
		tb.Error("a process that reached the restored store generates no equal IDs")
	}
	keepers = keepers[:1]
	for _, replace := range []func(){
		func() { r.must(r.replace(s, strings.Repeat("1", len(ID)), "the second secret")) },
		func() { r.atOnce() },
		func() { r.interrupted(objects) },
	} {
		restore()
		replace()
		keepers = append(keepers, r.keeper())
	}
	if n := r.equal(keepers); n > 0 {
		tb.Errorf("%d equal IDs of four histories", n)
	}
}

type restored struct {
	testing.TB
	open    func() (stores.Store, error)
	secrets []*randflake.Codec // of the operators
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

func (r *restored) codec(secret string) *randflake.Codec {
	c, err := randflake.NewCodec([]byte(secret)[:16])
	r.must(err)
	return c
}

// replace replaces the secret of the restored store.
func (r *restored) replace(s stores.Store, id, secret string) error {
	c := r.codec(secret)
	r.secrets = append(r.secrets, c)
	return s.Replace(r.Context(), ID, id, lease.Description{ID: id}.Fingerprint(c))
}

// atOnce has two operators replace the secret at once.
func (r *restored) atOnce() {
	r.Helper()
	one, other := r.codec("the third secret"), r.codec("a fourth secret!")
	r.secrets = append(r.secrets, one, other)
	var errs [2]error
	var all sync.WaitGroup
	for i, c := range []*randflake.Codec{one, other} {
		s, id := r.client(), strings.Repeat(string(rune('2'+i)), len(ID))
		all.Go(func() {
			errs[i] = s.Replace(r.Context(), ID, id, lease.Description{ID: id}.Fingerprint(c))
		})
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
	s := r.client()
	id := strings.Repeat("4", len(ID))
	for writes := 0; !s.KeepsSecret(); writes++ {
		broken, err := stores.New(&breaking{objects, writes},
			driver.Layout{Name: "broken", BlocksPerPage: 1})
		r.must(err)
		if err := r.replace(broken, id, "the fifth secret"); err == nil {
			return
		} else if writes == 10 {
			r.Fatal(err)
		}
	}
	r.must(r.replace(s, id, "the fifth secret"))
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

// keeper returns a Keeper that holds the store's only block, with whatever secret is the store's.
func (r *restored) keeper() *lease.Keeper {
	r.Helper()
	s, next := r.client(), 0
	secret := func(context.Context) (*randflake.Codec, error) {
		next++
		return r.secrets[len(r.secrets)-next%len(r.secrets)-1], nil
	}
	if s.KeepsSecret() {
		secret = stores.OwnSecret(s)
	}
	k, err := lease.Start(r.Context(), s, secret, lease.WithErrorHandler(func(error) {}),
		lease.WithMeterProvider(noop.NewMeterProvider()))
	r.must(err)
	r.Cleanup(func() { _ = k.Close(context.Background()) })
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := k.Ready(r.Context())
		if err == nil {
			return k
		} else if time.Now().After(end) {
			r.Fatal(err)
		}
	}
}

// equal returns how many equal IDs the Keepers generate in two seconds.
func (r *restored) equal(keepers []*lease.Keeper) (n int) {
	r.Helper()
	made, ids := map[randflake.ID]bool{}, make([]randflake.ID, 100)
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		for _, k := range keepers {
			got, _, err := k.Fill(ids)
			if err != nil {
				r.Fatal(err)
			}
			for _, id := range ids[:got] {
				if made[id] {
					n++
				}
				made[id] = true
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return n
}
