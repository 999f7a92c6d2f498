package leasetest

import (
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// Faults checks what clients see while fault happens, such as a server that is killed and started
// again: with those calls carried out or not that had no answer, it must be linearizable. It tries
// up to four times, since on a busy machine so many calls may have no answer that it cannot be
// decided of one try; so fault is called as often, with a new storage each time. Few clients are
// enough, and many make the check slow.
func Faults(tb testing.TB, clients int, newStorage func(testing.TB) Storage, fault func() error) {
	tb.Helper()
	const tries, timeout = 4, 20 * time.Second
	for range tries {
		storage, history := newStorage(tb), NewHistory(few)
		storage.Create(tb, Nodes(few))
		var all []lease.Store
		for range clients {
			all = append(all, history.Client(storage.Client(tb)))
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			Load{Calls: 50, Seed: 1, Timeout: time.Second, Pause: 60 * time.Millisecond}.Run(all, few)
		}()
		time.Sleep(300 * time.Millisecond)
		if err := fault(); err != nil {
			tb.Errorf("fault: %v", err)
		}
		<-done
		calls, unknown := history.Len()
		tb.Logf("%d calls, %d without an answer", calls, unknown)
		if unknown > calls/2 {
			tb.Errorf("%d of %d calls have no answer; that shows little", unknown, calls)
		}
		if history.Check(tb, timeout) {
			return
		}
	}
	tb.Errorf("linearizability: not decided of any of %d histories", tries)
}
