package engine

import (
	"testing"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Whatever a server returns, nothing panics, and accepted objects are written again unchanged.
func FuzzObjects(f *testing.F) {
	d := lease.Description{History: lease.History{ID: fresh, Begun: testStart}, Nodes: 1 << 17,
		BlockSize: 8, LongestTTL: lease.MaxTTL}
	known := &config{Format: format, Description: d, BlocksPerPage: 64, Complete: true}
	header := pageHeader{Format: format, Store: fresh}
	for _, object := range []struct {
		header any
		blocks []lease.Grant
	}{{known, nil}, {header, nil}, {header, []lease.Grant{held}}} {
		data, err := seal(object.header, object.blocks...)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"Format":4,"CRC32C":"00000000"}`))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, Sealed(data)} {
			o := driver.Object{Data: data, Version: "1"}
			if c, err := parseConfig(o); err == nil {
				for _, number := range c.numbers() {
					if _, err := parse(c, number, driver.Object{Data: []byte("\n"),
						Version: "1"}); err == nil {
						t.Fatalf("page %d is empty", number)
					}
				}
			}
			if p, err := parse(known, 0, o); err == nil {
				_ = p.offer(fresh)
				data, err := seal(p.pageHeader, p.granted()...)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := parse(known, 0, driver.Object{Data: data, Version: "2"}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
