package engine

import (
	"os"
	"testing"

	"github.com/traceflake/traceflake/lease/driver"
)

// Whatever a server returns, nothing panics, and accepted objects are written again unchanged.
func FuzzObjects(f *testing.F) {
	read := func(name string) driver.Object {
		data, err := os.ReadFile("testdata/format/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		return driver.Object{Data: data, Version: "1"}
	}
	known, err := parseConfig(read("config"))
	if err != nil {
		f.Fatal(err)
	}
	if _, err := parse(known, 0, read("page-0000")); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"Format":4,"CRC32C":"00000000"}`))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, Sealed(data)} {
			o := driver.Object{Data: data, Version: "1"}
			if c, err := parseConfig(o); err == nil {
				for number := range c.pages() {
					_, _ = parse(c, number, o)
				}
			}
			if p, err := parse(known, 0, o); err == nil {
				_ = p.offer("")
				data := seal(p.pageHeader, p.granted()...)
				if _, err := parse(known, 0, driver.Object{Data: data, Version: "2"}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
