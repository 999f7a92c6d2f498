// Package memstore keeps leases within one process, for tests: it forgets everything when the
// process ends.
package memstore

import (
	"cmp"
	"context"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

// New returns the store that d describes, in memory, with leases of any TTL. If it has no
// secrets, a Keeper may use any. Fields that d leaves empty are set as by
// [stores.NewDescription]. It panics if d is invalid.
func New(d lease.Description) stores.Store {
	d.LongestTTL = cmp.Or(d.LongestTTL, lease.MaxTTL)
	d, err := stores.NewDescription(d)
	if err != nil {
		panic(err)
	}
	s, err := stores.New(new(Objects), driver.Layout{Name: "lease: memory", BlocksPerPage: 64})
	if err == nil {
		err = s.Create(context.Background(), d)
	}
	if err != nil {
		panic(err)
	}
	return s
}
