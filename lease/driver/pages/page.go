package pages

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

// format is raised when an older version of this package could damage the
// objects.
const format = 2

// ErrEdited is returned if an object is not as this package wrote it. Nothing
// was written.
var ErrEdited = errors.New("the object was edited or damaged")

// header begins every object, of this format and of later ones.
type header struct {
	Format int    `json:"format"`
	Store  string `json:"store"` // the ID of the store to which the object belongs
}

func (h header) format() int { return h.Format }

// page is a page as it is stored, with what the server said of it.
type page struct {
	pageHeader
	Blocks []block // those that were written, in order

	version string
	now     time.Time // the server's
	nodes   driver.NodeRange
}

// pageHeader is the first line of a page.
type pageHeader struct {
	header
	Number int `json:"page"`
	// Writes counts the writes of the page, so that its bytes never recur: on
	// some servers the version is a hash of them, or they are the version.
	Writes uint64 `json:"writes"`
	// Recent has the nonces of the last writes, "" for a raise.
	Recent []string `json:"recent"`
	// Releases counts the releases on the page. While it stays the same, no end
	// was moved back: a block that was not free at a time is not free at it now.
	Releases uint64 `json:"releases"`
}

// block is a block that was written: a line of a page.
type block struct {
	Node    uint32    `json:"node"`
	Version uint64    `json:"version"`
	From    time.Time `json:"from,omitzero"`
	Until   time.Time `json:"until"`
	Nonce   string    `json:"nonce,omitempty"`
	Owner   string    `json:"owner,omitempty"`

	line []byte // as it was read, if it was
}

// maxRecent is more writes than others make before a client whose write was
// refused reads the page.
const maxRecent = 16

const pagePrefix = "page-"

func pageName(number int) string { return fmt.Sprintf("%s%04d", pagePrefix, number) }

// parse reads a page. Every page exists from the store's creation on.
func parse(sh *shape, number int, o Object) (*page, error) {
	p := &page{version: o.Version, now: o.Time, nodes: sh.blocks(number)}
	name := pageName(number)
	if o.Version == "" {
		return nil, fmt.Errorf("%w: the object %q is gone; put it back, then run `traceflake lease raise`", lease.ErrReplaced, name)
	}
	lines, err := open(name, o.Data, &p.pageHeader)
	if err != nil {
		return nil, err
	}
	p.Blocks = make([]block, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line, &p.Blocks[i]); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrEdited, name, err)
		}
		p.Blocks[i].line = line
	}
	return p, p.check(sh, number)
}

// check refuses a page that this package would not have written, or that belongs
// to another store.
func (p *page) check(sh *shape, number int) error {
	if p.Store != sh.ID {
		return fmt.Errorf("%w: %s belongs to the store %s, not to %s", lease.ErrReplaced, pageName(number), p.Store, sh.ID)
	}
	if p.Number != number {
		return fmt.Errorf("%w: %s is a copy of %s", ErrEdited, pageName(number), pageName(p.Number))
	}
	for i, b := range p.Blocks {
		var err error
		switch _, outside := p.nodes.Index(b.Node); {
		case outside != nil:
			err = errors.New("it is not on this page")
		case i > 0 && p.Blocks[i-1].Node >= b.Node:
			err = errors.New("it is not in order")
		case b.Version == 0:
			err = errors.New("it has no version")
		case b.Until.IsZero() || b.Until.Unix() > randflake.EndOfLife || b.From.After(b.Until):
			err = errors.New("its times are wrong")
		case !whole(b.From) || !whole(b.Until):
			err = errors.New("its times are not whole seconds")
		}
		if err != nil {
			return fmt.Errorf("%w: %s: the block of node %d: %w", ErrEdited, pageName(number), b.Node, err)
		}
	}
	return nil
}

func whole(t time.Time) bool { return t.Nanosecond() == 0 }

// get returns a block of the page.
func (p *page) get(node uint32) driver.Block {
	i, found := p.find(node)
	b := driver.Block{Lease: randflake.Lease{Node: node, Nodes: p.nodes.BlockSize}}
	if !found {
		return b
	}
	stored := p.Blocks[i]
	b.Start, b.End = stored.From, stored.Until
	b.Nonce, b.Version, b.Owner = stored.Nonce, stored.Version, stored.Owner
	return b
}

// has reports whether a block of the page has this nonce.
func (p *page) has(nonce string) bool {
	return slices.ContainsFunc(p.Blocks, func(b block) bool { return b.Nonce == nonce })
}

// put replaces a block of the page.
func (p *page) put(b driver.Block) {
	stored := block{
		Node: b.Node, Version: b.Version, From: b.Start, Until: b.End,
		Nonce: b.Nonce, Owner: b.Owner,
	}
	if i, found := p.find(b.Node); found {
		p.Blocks[i] = stored
	} else {
		p.Blocks = slices.Insert(p.Blocks, i, stored)
	}
}

func (p *page) find(node uint32) (i int, found bool) {
	return slices.BinarySearchFunc(p.Blocks, node, func(b block, node uint32) int {
		return cmp.Compare(b.Node, node)
	})
}

// since returns the nonces of the writes after the first n, as far as the page
// has them.
func (p *page) since(n uint64) []string {
	return p.Recent[len(p.Recent)-int(min(p.Writes-n, uint64(len(p.Recent)))):]
}

// bytes returns the page's next state as it is stored.
func (p *page) bytes(nonce string) ([]byte, error) {
	p.Writes++
	p.Recent = append(p.Recent, nonce)
	p.Recent = p.Recent[max(0, len(p.Recent)-maxRecent):]
	return seal(p.pageHeader, p.Blocks...)
}

// sum is the last line of an object: the checksum of the lines before it.
type sum struct {
	CRC32C string `json:"crc32c"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumOf(lines []byte) sum {
	return sum{fmt.Sprintf("%08x", crc32.Checksum(lines, castagnoli))}
}

// seal returns an object's data: a line of JSON for the header, one for each
// block, and one for the checksum.
func seal(header any, blocks ...block) ([]byte, error) {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(header)
	for i := range blocks {
		if line := blocks[i].line; line != nil {
			lines.Write(line)
			continue
		}
		err = errors.Join(err, encoder.Encode(&blocks[i]))
	}
	err = errors.Join(err, encoder.Encode(sumOf(lines.Bytes())))
	return lines.Bytes(), err // a year past 9999, which no block has
}

// open reads the header of an object and returns the lines of its blocks.
func open(name string, data []byte, first interface{ format() int }) (lines [][]byte, err error) {
	data = append(bytes.TrimSpace(data), '\n')
	line, _, _ := bytes.Cut(data, []byte("\n"))
	has := first
	damaged := json.Unmarshal(line, first)
	if damaged != nil { // unless a later format has more to read
		var h header
		_ = json.Unmarshal(line, &h)
		has = h
	}
	switch n := has.format(); {
	case n > format:
		return nil, fmt.Errorf("%w: %s has format %d, this version of the library supports %d; use a newer one",
			lease.ErrSchemaVersion, name, n, format)
	case damaged != nil:
		return nil, fmt.Errorf("%w: %s: %w; put back what it had", ErrEdited, name, damaged)
	case n < format:
		return nil, fmt.Errorf("%w: %s has no format %d: it is not an object of this store", lease.ErrSchemaVersion, name, format)
	}
	lines = bytes.SplitAfter(data[:len(data)-1], []byte("\n"))
	last := len(lines) - 1
	var s sum
	want := sumOf(data[:len(data)-1-len(lines[last])])
	if err := json.Unmarshal(lines[last], &s); err != nil || s != want {
		return nil, fmt.Errorf("%w: %s does not end with the checksum %s: put back what it had, "+
			"or set this checksum after every \"until\" was raised past all grants", ErrEdited, name, want.CRC32C)
	}
	return lines[1:last], nil
}
