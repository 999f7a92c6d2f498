package backfill

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/trace"
)

// keyTable stores the trace ID of each key in a temporary file, so that memory does not grow with
// the number of keys: a hash table with open addressing, doubled when it fills up. Its slots are
// in the order of the hashes, so that doubling reads and writes both files sequentially. A B+tree
// would write many times as much for unordered keys.
type keyTable struct {
	dir   string
	file  *os.File
	bits  int   // the file has 2^bits slots
	n     int64 // slots in use
	pages []page
}

// page is a piece of the file in memory.
type page struct {
	number int64 // from 1; 0 is none
	dirty  bool
	data   [pageSize]byte
}

const (
	hashLen     = 16
	slotSize    = hashLen + 16 // hash, trace ID; a slot with a zero trace ID is free
	pageSize    = 4096
	pageSlots   = pageSize / slotSize
	cachedPages = 512 // 2 MiB
	// firstBits makes a file of 2 MiB.
	firstBits = 16
)

func newKeyTable(dir string) (*keyTable, error) { return makeKeyTable(dir, firstBits) }

func makeKeyTable(dir string, bits int) (*keyTable, error) {
	f, err := os.CreateTemp(dir, "traceflake-backfill-*")
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	// If the system allows it, the open file is removed at once, so that nothing remains however
	// the process ends; otherwise close removes it.
	_ = os.Remove(f.Name())
	t := &keyTable{dir: dir, file: f, bits: bits, pages: make([]page, cachedPages)}
	if err := f.Truncate(slotSize << bits); err != nil {
		return nil, fmt.Errorf("keys: %w", errors.Join(err, t.close()))
	}
	return t, nil
}

func (t *keyTable) close() error {
	err := t.file.Close()
	if removeErr := os.Remove(t.file.Name()); removeErr != nil && !errors.Is(removeErr, os.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}

// get returns the key's trace ID, and makes one if there is none. Errors of newID are returned
// unwrapped.
func (t *keyTable) get(key []byte, newID func() (trace.TraceID, error)) (id trace.TraceID, err error) {
	sum := sha256.Sum256(key)
	hash := sum[:hashLen]
	slot, err := t.find(hash)
	if err != nil {
		return id, err
	}
	if id = slot.id(); id.IsValid() {
		return id, nil
	}
	if id, err = newID(); err != nil {
		return id, err
	}
	slot.set(hash, id)
	t.n++
	if t.n > 7<<t.bits/10 {
		err = t.double()
	}
	return id, err
}

// slot is a slot in a page, valid until the page is reused.
type slot struct {
	*page
	at int
}

func (s slot) hash() []byte      { return s.data[s.at : s.at+hashLen] }
func (s slot) id() trace.TraceID { return trace.TraceID(s.data[s.at+hashLen : s.at+slotSize]) }

func (s slot) set(hash []byte, id trace.TraceID) {
	copy(s.data[s.at:], hash)
	copy(s.data[s.at+hashLen:], id[:])
	s.dirty = true
}

// find returns the slot of a hash, or the free slot for it.
func (t *keyTable) find(hash []byte) (slot, error) {
	first := int64(binary.BigEndian.Uint64(hash) >> (64 - t.bits))
	at := int(first%pageSlots) * slotSize
	for number := first / pageSlots; ; number = (number + 1) % t.count() {
		p, err := t.page(number)
		if err != nil {
			return slot{}, err
		}
		for ; at < pageSize; at += slotSize {
			if s := (slot{p, at}); !s.id().IsValid() || bytes.Equal(s.hash(), hash) {
				return s, nil
			}
		}
		at = 0
	}
}

// count returns the number of pages.
func (t *keyTable) count() int64 { return 1 << t.bits / pageSlots }

func (t *keyTable) page(number int64) (*page, error) {
	p := &t.pages[number%cachedPages]
	if p.number == number+1 {
		return p, nil
	}
	if p.dirty {
		if _, err := t.file.WriteAt(p.data[:], (p.number-1)*pageSize); err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
	}
	p.number, p.dirty = 0, false
	if _, err := t.file.ReadAt(p.data[:], number*pageSize); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	p.number = number + 1
	return p, nil
}

func (t *keyTable) double() error {
	bigger, err := makeKeyTable(t.dir, t.bits+1)
	if err != nil {
		return err
	}
	for number := range t.count() {
		p, err := t.page(number)
		if err != nil {
			return errors.Join(err, bigger.close())
		}
		for s := (slot{p, 0}); s.at < pageSize; s.at += slotSize {
			if !s.id().IsValid() {
				continue
			}
			free, err := bigger.find(s.hash())
			if err != nil {
				return errors.Join(err, bigger.close())
			}
			free.set(s.hash(), s.id())
		}
	}
	old := t.file
	t.file, t.bits, t.pages = bigger.file, bigger.bits, bigger.pages
	return (&keyTable{file: old}).close()
}
