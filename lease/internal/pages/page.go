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
const format = 1

// ErrEdited is returned if an object is not as this package wrote it. Nothing
// was written.
var ErrEdited = errors.New("the object was edited or damaged")

// header begins every object.
type header struct {
	Format        int    `json:"format"`
	BlockSize     uint32 `json:"block_size"`
	BlocksPerPage uint32 `json:"blocks_per_page"`
}

// page is a page as it is stored, with what the server said of it.
type page struct {
	header
	Number int `json:"page"`
	// Writes counts the writes of the page, so that its bytes never recur: on
	// some servers the version is a hash of them.
	Writes uint64 `json:"writes"`
	// Recent has the nonces of the last writes, "" for a raise.
	Recent []string `json:"recent"`
	// Releases counts the releases on the page. While it stays the same, no end
	// was moved back: a block that was not free at a time is not free at it now.
	Releases uint64  `json:"releases"`
	Blocks   []block `json:"blocks"` // those that were written, in order
	Marks    []mark  `json:"marks,omitempty"`

	version string
	now     time.Time // the server's
	nodes   driver.NodeRange
}

// block is a block that was written.
type block struct {
	Node    uint32    `json:"node"`
	Version uint64    `json:"version"`
	From    time.Time `json:"from,omitzero"`
	Until   time.Time `json:"until"`
	Nonce   string    `json:"nonce,omitempty"`
	Owner   string    `json:"owner,omitempty"`
}

// mark says that no block on this page is for a holder any more, because it was
// full: the search went on to another page. Each step of the search has a
// higher number, so that it may return to a page.
type mark struct {
	Nonce string    `json:"nonce"`
	Step  int       `json:"step"`
	To    int       `json:"to"`
	Until time.Time `json:"until"`
}

// Marks are removed when they are over, or when a page has too many. The cost of
// one that is removed too early is small: if its holder asks once more, because
// it had no answer, it may be given a second block, and the first one is unused
// until its grant's end. No second is granted twice.
//
// A mark lasts as long as the grant that it leads to, so that the second block
// costs nothing, and markFor longer, for a holder that asks again until it has
// one. They are counted in case the whole fleet does so.
const (
	markFor  = time.Hour
	maxMarks = 64
)

// maxRecent is more writes than others make before a client whose write was
// refused reads the page.
const maxRecent = 16

const pagePrefix = "page-"

func pageName(number int) string { return fmt.Sprintf("%s%04d", pagePrefix, number) }

// parse reads a page. One that was never written has no blocks.
func parse(sh shape, number int, o Object) (*page, error) {
	p := &page{version: o.Version, now: o.Time, nodes: sh.blocks(number)}
	if o.Version == "" {
		p.header, p.Number = sh.header(), number
	} else if err := open(pageName(number), o.Data, p); err != nil {
		return nil, err
	}
	return p, p.check(sh, number)
}

// check refuses a page that this package would not have written.
func (p *page) check(sh shape, number int) error {
	if p.header != sh.header() {
		return fmt.Errorf("%w: %s has blocks of %d nodes, %d on a page, and the store had %s: "+
			"was it replaced? Restart this process",
			lease.ErrBlockSize, pageName(number), p.BlockSize, p.BlocksPerPage, sh)
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
	for _, m := range p.Marks {
		if last := sh.page(randflake.MaxNode); m.To < 0 || m.To > last {
			return fmt.Errorf("%w: %s has a mark to page %d, and the last one is %d",
				ErrEdited, pageName(number), m.To, last)
		}
	}
	return nil
}

func whole(t time.Time) bool { return t.Nanosecond() == 0 }

// get returns a block of the page.
func (p *page) get(node uint32) driver.Block {
	i, found := p.find(node)
	if !found {
		return driver.Block{Node: node, Nodes: p.BlockSize}
	}
	b := p.Blocks[i]
	return driver.Block{
		Node: node, Nodes: p.BlockSize, Start: b.From, GrantedUntil: b.Until,
		Nonce: b.Nonce, Version: b.Version, Owner: b.Owner,
	}
}

// put replaces a block of the page.
func (p *page) put(b driver.Block) {
	stored := block{
		Node: b.Node, Version: b.Version, From: b.Start, Until: b.GrantedUntil,
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

// held returns the block of a holder.
func (p *page) held(sh shape, holder string) (driver.Block, bool) {
	for _, b := range p.Blocks {
		if _, err := sh.nodes.Index(b.Node); err == nil && b.Nonce == holder {
			return p.get(b.Node), true
		}
	}
	return driver.Block{}, false
}

// free returns the block that has been free longest.
func (p *page) free(sh shape, now time.Time) (best driver.Block, ok bool) {
	for i := range p.nodes.Blocks() {
		b := p.get(p.nodes.Block(i).Node)
		if _, err := sh.nodes.Index(b.Node); err != nil || !b.Free(now) {
			continue
		}
		if !ok || b.GrantedUntil.Before(best.GrantedUntil) {
			best, ok = b, true
		}
	}
	return best, ok
}

// mark returns the mark of a holder, or one of step 0.
func (p *page) mark(holder string) mark {
	for _, m := range p.Marks {
		if m.Nonce == holder {
			return m
		}
	}
	return mark{}
}

// setMark replaces the mark of a holder.
func (p *page) setMark(m mark) {
	p.Marks = slices.DeleteFunc(p.Marks, func(old mark) bool { return old.Nonce == m.Nonce })
	p.Marks = append(p.Marks, m)
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
	p.Marks = slices.DeleteFunc(p.Marks, func(m mark) bool { return m.Until.Before(p.now) })
	p.Marks = p.Marks[max(0, len(p.Marks)-maxMarks):] // the oldest are first
	return seal(p)
}

const (
	sumBegins = `,"checksum":"`
	sumEnds   = `"}`
	sumLen    = len(sumBegins) + 8 + len(sumEnds)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal returns an object's data: JSON whose last member is the checksum of all
// that is before it. Each block and each mark has a line.
func seal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err // a year past 9999, which no block has
	}
	// In strings quotes are escaped, so this text is between objects.
	data = bytes.ReplaceAll(data, []byte(`{"no`), []byte("\n{\"no"))
	data = data[:len(data)-1]
	return fmt.Appendf(data, "%s%08x%s\n", sumBegins, crc32.Checksum(data, castagnoli), sumEnds), nil
}

// open reads an object's data.
func open(name string, data []byte, v any) error {
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return fmt.Errorf("%w: %s: %w; put back what it had", ErrEdited, name, err)
	}
	if h.Format > format {
		return fmt.Errorf("%w: %s has format %d, this version of the library supports %d; use a newer one",
			lease.ErrSchemaVersion, name, h.Format, format)
	}
	if h.Format < 1 {
		return fmt.Errorf("%w: %s has no format: it is not an object of leases", lease.ErrSchemaVersion, name)
	}
	data = bytes.TrimSpace(data)
	body := data[:max(0, len(data)-sumLen)]
	sum := fmt.Sprintf("%s%08x%s", sumBegins, crc32.Checksum(body, castagnoli), sumEnds)
	if !bytes.HasSuffix(data, []byte(sum)) {
		return fmt.Errorf("%w: %s does not end with %s: put back what it had, "+
			"or set this checksum after every \"until\" was raised past all grants", ErrEdited, name, sum[1:])
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %s: %w; put back what it had", ErrEdited, name, err)
	}
	return nil
}
