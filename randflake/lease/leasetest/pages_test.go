package leasetest_test

import (
	"testing"
	"time"

	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/driver"
	"github.com/traceflake/traceflake/randflake/lease/internal/pages"
	"github.com/traceflake/traceflake/randflake/lease/internal/pages/pagestest"
	"github.com/traceflake/traceflake/randflake/lease/leasetest"
)

func onPages(perPage uint32) leasetest.Harness {
	return leasetest.Harness{
		KnowsTime: true,
		New: func(testing.TB) leasetest.Open {
			server := &pagestest.Server{Now: time.Now}
			return func(nodes driver.NodeRange) (lease.Store, error) {
				if err := nodes.Check(); err != nil {
					return nil, err // a driver would take zeros for the store's
				}
				return pages.New(server, pages.Layout{Name: "pages", BlocksPerPage: perPage}, nodes), nil
			}
		},
	}
}

func TestPages(t *testing.T) { leasetest.Run(t, onPages(64)) }
