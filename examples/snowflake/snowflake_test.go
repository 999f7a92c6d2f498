package snowflake

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
)

// Several processes on one store never generate an ID twice, while some of them are closed,
// restarted and told that they are copies.
func TestUnique(t *testing.T) {
	store := memstore.New(lease.Description{Nodes: 64, BlockSize: 1}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var snowflakes, sonyflakes sync.Map
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for life := range 3 {
				keeper, err := lease.Start(ctx, store, nil, lease.WithTTL(2*time.Second),
					lease.WithErrorHandler(func(error) {}))
				if err != nil {
					t.Error(err)
					return
				}
				one, two := &Snowflake{Keeper: keeper}, &Sonyflake{Keeper: keeper}
				for i := range 50 {
					if life == 1 && i == 25 {
						keeper.OnRestore() // the next ID waits for another lease
					}
					a, err := one.Next(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					b, err := two.Next(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					if _, twice := snowflakes.LoadOrStore(a, nil); twice {
						t.Errorf("the Snowflake %d was generated twice", a)
					}
					if _, twice := sonyflakes.LoadOrStore(b, nil); twice {
						t.Errorf("the Sonyflake %d was generated twice", b)
					}
				}
				keeper.Close()
			}
		})
	}
	all.Wait()
}
