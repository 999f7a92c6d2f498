// Package memstore keeps leases within one process, for tests: it forgets everything when the
// process ends.
package memstore

import (
	"cmp"
	"context"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// New returns the store that d describes, in memory, with leases of any TTL; see
// [stores.Store.Create]. Without a secret the store is Keyless. It panics if d is invalid.
func New(d lease.Description, secret *randflake.Codec) stores.Store {
	d.LongestTTL = cmp.Or(d.LongestTTL, lease.MaxTTL)
	s, err := stores.New(new(Objects), driver.Layout{Name: "lease: memory", BlocksPerPage: 64})
	if err == nil {
		_, err = s.Create(context.Background(), d, secret)
	}
	if err != nil {
		panic(err)
	}
	return s
}
