package pages

import (
	"bytes"
	"encoding/json"

	"github.com/traceflake/traceflake/lease/driver"
)

// Order returns the order in which an Acquire with a nonce tries the pages.
func Order(s driver.Store, nonce string) []int { return s.(*store).used.Load().order(nonce) }

// Edit changes an object and gives it the right checksum. Its blocks are the
// member "blocks".
func Edit(data []byte, edit func(o map[string]any)) []byte {
	var all []map[string]any
	for line := range bytes.Lines(data) {
		var o map[string]any
		if err := json.Unmarshal(line, &o); err != nil {
			panic(err)
		}
		all = append(all, o)
	}
	o := all[0]
	o["blocks"] = all[1 : len(all)-1]
	edit(o)
	blocks := o["blocks"].([]map[string]any)
	delete(o, "blocks")
	var edited bytes.Buffer
	encoder := json.NewEncoder(&edited)
	for _, o := range append([]map[string]any{o}, blocks...) {
		if err := encoder.Encode(o); err != nil {
			panic(err)
		}
	}
	if err := encoder.Encode(sumOf(edited.Bytes())); err != nil {
		panic(err)
	}
	return edited.Bytes()
}
