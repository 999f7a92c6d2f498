package backfill

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/otel/trace"
)

// keyTable remembers the trace ID of each key in a temporary file, so that
// memory does not grow with the number of keys: a hash table with open
// addressing, doubled when it fills. Its slots are in the order of the hashes,
// so that doubling runs through both files from front to back. A B+tree would
// write a page for each new key, here it is a slot.
type keyTable struct {
	dir  string
	file *os.File
	bits int   // the file has 2^bits slots
	n    int64 // slots in use
	page [pageSize]byte
}

const (
	hashLen  = 16
	slotSize = hashLen + 16 // hash, trace ID; a slot with a zero trace ID is free
	pageSize = 4096
	// firstBits is a file of 2 MiB.
	firstBits = 16
)

func newKeyTable(dir string) (*keyTable, error) {
	t := &keyTable{dir: dir, bits: firstBits}
	var err error
	t.file, err = t.newFile(firstBits)
	return t, err
}

func (t *keyTable) newFile(bits int) (*os.File, error) {
	f, err := os.CreateTemp(t.dir, "traceflake-backfill-*")
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	// The name goes at once where an open file may lose it, so that nothing
	// is left behind however this ends; else it goes in close.
	_ = os.Remove(f.Name())
	if err := f.Truncate(slotSize << bits); err != nil {
		return nil, fmt.Errorf("keys: %w", errors.Join(err, f.Close()))
	}
	return f, nil
}

func (t *keyTable) close() error {
	err := t.file.Close()
	if removeErr := os.Remove(t.file.Name()); removeErr != nil && !errors.Is(removeErr, os.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}

// get returns the key's trace ID, and makes it when there is none. Errors are
// those of newID as they are, and of the file.
func (t *keyTable) get(key []byte, newID func() (trace.TraceID, error)) (id trace.TraceID, err error) {
	sum := sha256.Sum256(key)
	hash := sum[:hashLen]
	slot, id, err := t.find(hash)
	if err != nil || id.IsValid() {
		return id, err
	}
	if id, err = newID(); err != nil {
		return id, err
	}
	if err := t.write(slot, hash, id); err != nil {
		return id, err
	}
	t.n++
	if t.n > 7<<t.bits/10 {
		return id, t.double()
	}
	return id, nil
}

// find returns the slot of a hash with its ID, or the free one that it gets.
func (t *keyTable) find(hash []byte) (slot int64, id trace.TraceID, err error) {
	slots := int64(1) << t.bits
	slot = int64(binary.BigEndian.Uint64(hash) >> (64 - t.bits)) //nolint:gosec // a few bits
	for {
		offset := slot * slotSize
		page := t.page[:pageSize-offset%pageSize]
		if _, err := t.file.ReadAt(page, offset); err != nil {
			return 0, id, fmt.Errorf("keys: %w", err)
		}
		for ; len(page) > 0; page = page[slotSize:] {
			id = trace.TraceID(page[hashLen:slotSize])
			if !id.IsValid() || bytes.Equal(page[:hashLen], hash) {
				return slot, id, nil
			}
			slot++
		}
		slot %= slots
	}
}

func (t *keyTable) write(slot int64, hash []byte, id trace.TraceID) error {
	var b [slotSize]byte
	copy(b[:], hash)
	copy(b[hashLen:], id[:])
	if _, err := t.file.WriteAt(b[:], slot*slotSize); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return nil
}

func (t *keyTable) double() error {
	bigger := &keyTable{dir: t.dir, bits: t.bits + 1}
	var err error
	if bigger.file, err = bigger.newFile(bigger.bits); err != nil {
		return err
	}
	old := io.NewSectionReader(t.file, 0, slotSize<<t.bits)
	chunk := make([]byte, 64*pageSize)
	for {
		n, err := io.ReadFull(old, chunk)
		if n == 0 && errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("keys: %w", errors.Join(err, bigger.close()))
		}
		for b := chunk[:n]; len(b) > 0; b = b[slotSize:] {
			id := trace.TraceID(b[hashLen:slotSize])
			if !id.IsValid() {
				continue
			}
			slot, _, err := bigger.find(b[:hashLen])
			if err == nil {
				err = bigger.write(slot, b[:hashLen], id)
			}
			if err != nil {
				return errors.Join(err, bigger.close())
			}
		}
	}
	if err := t.close(); err != nil {
		return errors.Join(fmt.Errorf("keys: %w", err), bigger.close())
	}
	t.file, t.bits = bigger.file, bigger.bits
	return nil
}
