package snowflake

import (
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
	var ids sync.Map
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for life := range 3 {
				keeper, err := lease.Start(t.Context(), store, nil, lease.WithTTL(2*time.Second),
					lease.WithErrorHandler(func(error) {}))
				if err != nil {
					t.Error(err)
					return
				}
				snowflake := &Snowflake{Keeper: keeper}
				var last int64 // node of this life
				for i := range 50 {
					if life == 1 && i == 25 {
						keeper.OnRestore() // the next ID waits for another lease
					}
					id, err := snowflake.Next(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if life == 1 && i == 25 && id.Node() == last {
						t.Errorf("node %d is used after a restore of the machine", last)
					}
					last = id.Node()
					if _, twice := ids.LoadOrStore(id, nil); twice {
						t.Errorf("the ID %d was generated twice", id)
					}
				}
				keeper.Close()
			}
		})
	}
	all.Wait()
}
