package idgen

import (
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// Source generates Randflake IDs. A randflake.Generator is one, and so is a lease.Keeper.
//
// Fill writes len(dst) IDs of one second, none of them zero, and returns len(dst) and the second,
// or an error. Many goroutines call it whenever spans start: it must be safe for concurrent use and
// never wait.
//
// A source that can invalidate the IDs that it returned before also has the methods
//
//	Generation() uint64
//	OnRestore()
//
// as a lease.Keeper does, whose generation changes when the machine seems to have been suspended or
// cloned. When the number changes, the IDs that a [Generator] has ready are discarded. Generation
// is called after each Fill, and at least every 250 ms while trace IDs are generated, every second
// while only span IDs are. OnRestore is called after this process was restored from a snapshot:
// when it returns, Fill returns no ID that depends on anything from before the call: no lease and
// no secret. Both must be safe for concurrent use, never wait, and not use the Generator.
type Source interface {
	Fill(dst []randflake.ID) (n int, second time.Time, err error)
}

// generational is a [Source] that can invalidate the IDs that it returned before.
type generational interface {
	Source
	Generation() uint64
	OnRestore()
}
