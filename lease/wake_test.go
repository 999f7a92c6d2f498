package lease_test

import (
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/randflake"
)

// A drop wakes the Keeper at once; refusals do not.
func TestWoken(t *testing.T) {
	b := newHeld(t)
	for range 3 {
		b.second()
	}
	b.wantError(randflake.ErrExhausted)
	if len(b.Kick()) != 0 {
		t.Error("an exhausted second wakes the Keeper")
	}
	b.Drop(b.Term())
	if len(b.Kick()) != 1 {
		t.Error("a drop does not wake the Keeper")
	}
}

// A grant that is dropped during its renewal is not a failure of the store.
func TestDroppedDuringRenewal(t *testing.T) {
	b := newHeld(t)
	b.once("renew", func() { b.Drop(b.Term()) })
	b.pass(6 * time.Second)
	b.wantReports(lease.ErrCloned)
}

// A process generates three million IDs a second with a block of 32 nodes, and never borrows more
// than the bound: no call is refused.
func TestLargeBlocks(t *testing.T) {
	b := newBench(t)
	b.store.Store = memstore.New(lease.Description{Nodes: 64, BlockSize: 32})
	b.pass(0)
	const rate, batches = 3_000_000, 1000
	ids := make([]randflake.ID, rate/batches)
	for range 5 * batches {
		if n, _, err := b.Fill(ids); n != len(ids) || err != nil {
			t.Fatalf("%d IDs, %v", n, err)
		}
		b.pass(time.Second / batches)
	}
}
