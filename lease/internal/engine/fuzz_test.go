package engine

import (
	"testing"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Whatever a server returns, nothing panics, and accepted objects are written again unchanged.
func FuzzObjects(f *testing.F) {
	d, err := NewDescription(lease.Description{ID: fresh, Created: testStart})
	if err != nil {
		f.Fatal(err)
	}
	known := &config{Format: format, Description: d, BlocksPerPage: 64, Phase: complete}
	p := &page{pageHeader: pageHeader{Format: format, Store: fresh}, nodes: known.blocks(0)}
	p.put(held)
	for _, object := range []interface{ bytes() ([]byte, error) }{known, pageBytes{p}} {
		data, err := object.bytes()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"Format":3,"CRC32C":"00000000"}`))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, Sealed(data)} {
			o := driver.Object{Data: data, Version: "1"}
			if c, err := parseConfig(o); err == nil {
				for _, number := range c.numbers() {
					if nodes := c.blocks(number); checkNodes(nodes) != nil {
						t.Fatalf("page %d has %+v", number, nodes)
					}
				}
			}
			if p, err := parse(known, 0, o); err == nil {
				_ = p.offer(fresh)
				if data, err = p.bytes(fresh); err != nil {
					t.Fatal(err)
				}
				if _, err := parse(known, 0, driver.Object{Data: data, Version: "2"}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// pageBytes is a page as an object.
type pageBytes struct{ *page }

func (p pageBytes) bytes() ([]byte, error) { return p.page.bytes(fresh) }
