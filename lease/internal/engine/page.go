package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Blocks are kept on pages of a fixed number of blocks. Every page is one object:
//
//	config     {"Format":3,"ID":"…","First":0,"Nodes":131072,"BlockSize":8,"Phase":"complete",…}
//	           {"CRC32C":"…"}
//	page-0000  {"Format":3,"Store":"…","Number":0,"Writes":3,"Recent":[…]}
//	           {"Node":0,"Nodes":8,"Start":"…","End":"…","Nonce":"…","Version":1,…}
//	           …
//	           {"CRC32C":"…"}
//
// Create writes all of them: first config, then every page, and then config again, as complete.
// Nobody uses the store earlier, and no object is created later. Every change is one conditional
// write of one page; if the page has changed meanwhile, it is read again. A write whose outcome is
// unknown is never repeated: the caller finds out by the nonce.

// format increases when an older version of this package could damage the objects.
const format = 3

// page is a stored page with its version, and the time at which the server sent it.
type page struct {
	pageHeader
	Blocks []lease.Grant // those that were written, in order

	now   time.Time         // the server's, or zero
	nodes lease.Description // only the blocks of the page
}

// pageHeader is the first line of a page.
type pageHeader struct {
	Format int
	Store  string // the ID of the history to which the page belongs
	Number int
	// Writes counts the writes of the page, so that its bytes never recur: on
	// some servers the version is a hash of them, or they are the version.
	Writes uint64
	// Removed are the fingerprints of secrets with which no lease is renewed.
	Removed []string `json:",omitempty"`
	// Recent has the nonces of the last writes.
	Recent []string
}

// latest adds to the latest nonces or removed secrets that a store remembers: between a refused
// write and the next read others write less often, and a process that may still have a lease with
// an older secret has run without a renewal since.
func latest(all []string, next string) []string {
	const most = 16
	all = append(all, next)
	return all[max(0, len(all)-most):]
}

const pagePrefix = "page-"

func pageName(number int) string { return fmt.Sprintf("%s%04d", pagePrefix, number) }

// parse reads a page. Every page exists from the store's creation on.
func parse(c *config, number int, o driver.Object) (*page, error) {
	p := &page{now: o.Time, nodes: c.blocks(number)}
	name := pageName(number)
	if o.Version == "" {
		return nil, edited("%s is gone", name)
	}
	lines, err := unseal(name, o.Data, &p.pageHeader)
	if err != nil {
		return nil, err
	}
	p.Blocks = make([]lease.Grant, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line, &p.Blocks[i]); err != nil {
			return nil, edited("%s: %w", name, err)
		}
		p.Blocks[i].Store = p.Store
	}
	return p, cmp.Or(p.check(c, number), c.here(o.Place)) // another store is not a copy
}

// newPage returns a page whose blocks were never granted.
func newPage(c *config, number int) *page {
	return &page{pageHeader: pageHeader{Format: format, Store: c.ID, Number: number},
		nodes: c.blocks(number)}
}

// check returns an error for a page that this package would not have written, or of another store.
func (p *page) check(c *config, number int) error {
	if err := same(p.Store, c.ID); err != nil {
		return fmt.Errorf("%s: %w", pageName(number), err)
	}
	if p.Number != number {
		return edited("%s is a copy of %s", pageName(number), pageName(p.Number))
	}
	for i, b := range p.Blocks {
		switch {
		case checkBlock(p.nodes, b.Node) != nil, b.Nodes != c.BlockSize, i > 0 &&
			p.Blocks[i-1].Node >= b.Node, b.Version == 0,
			b.End.IsZero(), b.End.Unix() > randflake.EndOfLife, b.Start.After(b.End),
			b.Start.Nanosecond() > 0, b.End.Nanosecond() > 0:
			return edited("%s: line %d is not a block that was written: %+v",
				pageName(number), i+2, b)
		}
	}
	return nil
}

// get returns a block of the page.
func (p *page) get(node uint32) lease.Grant {
	if i, found := p.find(node); found {
		return p.Blocks[i]
	}
	return lease.Grant{Store: p.Store,
		Lease: randflake.Lease{Node: node, Nodes: p.nodes.BlockSize}}
}

// has reports whether a block of the page has this nonce.
func (p *page) has(nonce string) bool {
	return slices.ContainsFunc(p.Blocks, func(b lease.Grant) bool { return b.Nonce == nonce })
}

// put replaces a block of the page.
func (p *page) put(b lease.Grant) {
	i, found := p.find(b.Node)
	if !found {
		p.Blocks = slices.Insert(p.Blocks, i, b)
	}
	p.Blocks[i] = b
}

func (p *page) find(node uint32) (i int, found bool) {
	return slices.BinarySearchFunc(p.Blocks, node, func(b lease.Grant, node uint32) int {
		return cmp.Compare(b.Node, node)
	})
}

// bytes returns the stored form of the page's next state.
func (p *page) bytes(nonce string) ([]byte, error) {
	p.Writes++
	p.Recent = latest(p.Recent, nonce)
	return seal(p.pageHeader, p.Blocks...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf returns the last line of an object: the checksum of all other lines.
func sumOf(lines []byte) []byte {
	return fmt.Appendf(nil, "{\"CRC32C\":\"%08x\"}\n", crc32.Checksum(lines, castagnoli))
}

// seal returns an object's data: a line of JSON for the header, one for each
// block, and one for the checksum.
func seal(header any, blocks ...lease.Grant) ([]byte, error) {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(header)
	for _, b := range blocks {
		err = errors.Join(err, encoder.Encode(b))
	}
	lines.Write(sumOf(lines.Bytes()))
	return lines.Bytes(), err // a year past 9999, which no block has
}

// unseal reads the header of an object and returns the lines of its blocks.
func unseal(name string, data []byte, first any) (lines [][]byte, err error) {
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
	if err := json.Unmarshal(lines[0], first); err != nil {
		return nil, edited("%s: %w", name, err)
	}
	return lines[1:last], nil
}

// edited returns the error for an object that this package would not have written.
func edited(format string, args ...any) error {
	return fmt.Errorf("%w: %w", driver.ErrEdited, fmt.Errorf(format, args...))
}
