package pages

import (
	"bytes"
	"encoding/json"

	"github.com/traceflake/traceflake/lease/driver"
)

// Order returns the order in which an Acquire with a nonce tries the pages.
func Order(s driver.Store, nonce string) []int { return s.(*store).used.Load().order(nonce) }

// Sealed returns an object that was edited, with the right checksum.
func Sealed(data []byte) []byte {
	lines := data[:1+bytes.LastIndexByte(data[:len(data)-1], '\n')]
	last, err := json.Marshal(sumOf(lines))
	if err != nil {
		panic(err)
	}
	return append(append(bytes.Clone(lines), last...), '\n')
}
