package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// An object is lines of JSON: a header, one for each block that was granted, and a checksum.
//
//	config     {"Format":4,"ID":"…","Nodes":131072,"Complete":true,"Place":"…",…}
//	           {"CRC32C":"…"}
//	page-0000  {"Format":4,"Store":"…","Number":0}
//	           {"Node":0,"Nodes":8,"Start":"…","End":"…","Nonce":"…","Version":1,…}
//	           …
//	           {"CRC32C":"…"}
//
// The bytes of an object never recur, unless it is set back: on some servers the version is a hash
// of them, or they are the version. Each history has its ID, and each write of a page raises the
// version of a block.

// format increases when an older version of this package could damage the objects.
const format = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf returns the last line of an object: the checksum of all other lines.
func sumOf(lines []byte) []byte {
	return fmt.Appendf(nil, "{\"CRC32C\":\"%08x\"}\n", crc32.Checksum(lines, castagnoli))
}

// seal returns an object's data. Encoding fails for years past 9999 only, which no object has.
func seal(header any, blocks ...lease.Grant) []byte {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(header)
	for _, b := range blocks {
		_ = encoder.Encode(b)
	}
	lines.Write(sumOf(lines.Bytes()))
	return lines.Bytes()
}

// unseal reads the header of an object and returns the lines of its blocks.
func unseal(name string, data []byte, header any) (lines [][]byte, err error) {
	lines = slices.Collect(bytes.Lines(append(bytes.TrimSpace(data), '\n')))
	last := len(lines) - 1
	var h struct{ Format int }
	if json.Unmarshal(lines[0], &h) == nil && h.Format != format {
		return nil, fmt.Errorf("%w: %s has format %d, and this version of the library supports %d",
			lease.ErrSchemaVersion, name, h.Format, format)
	}
	if last == 0 {
		return nil, edited("%s has one line only", name)
	}
	if want := sumOf(bytes.Join(lines[:last], nil)); !bytes.Equal(lines[last], want) {
		return nil, edited("%s does not end with the line %q", name, want)
	}
	if err := json.Unmarshal(lines[0], header); err != nil {
		return nil, edited("%s: %w", name, err)
	}
	return lines[1:last], nil
}

// edited returns the error for an object that this package would not have written.
func edited(format string, args ...any) error {
	return fmt.Errorf("%w: %w", driver.ErrEdited, fmt.Errorf(format, args...))
}
