package boltstore

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

const (
	keyLen    = 4
	nonceLen  = 16
	sumLen    = 4
	ownerAt   = 8 + 8 + 8 + nonceLen
	recordLen = ownerAt + sumLen // without the owner
	maxOwner  = 128
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func keyOf(node uint32) []byte { return binary.BigEndian.AppendUint32(nil, node) }

// encode writes a block as the value of its key. No holder is all zeros.
func encode(b driver.Block) ([]byte, error) {
	v := make([]byte, 0, recordLen+len(b.Owner))
	v = binary.BigEndian.AppendUint64(v, uint64(unixOf(b.Start)))
	v = binary.BigEndian.AppendUint64(v, uint64(unixOf(b.GrantedUntil)))
	v = binary.BigEndian.AppendUint64(v, b.Version)
	var holder [nonceLen]byte
	if b.Nonce != "" {
		if n, err := hex.Decode(holder[:], []byte(b.Nonce)); err != nil || n != nonceLen {
			return nil, fmt.Errorf("%w: holder %q", lease.ErrInvalidRequest, b.Nonce)
		}
	}
	v = append(v, holder[:]...)
	v = append(v, b.Owner...)
	return binary.BigEndian.AppendUint32(v, sum(keyOf(b.Node), v)), nil
}

// decode fills in b from the file's value for b.Node. A nil value means that
// the block was never granted.
func decode(b driver.Block, v []byte) (driver.Block, error) {
	if v == nil {
		return b, nil
	}
	if len(v) < recordLen || len(v) > recordLen+maxOwner {
		return b, fmt.Errorf("%w: node %d has a record of %d bytes, want %d to %d",
			ErrCorrupt, b.Node, len(v), recordLen, recordLen+maxOwner)
	}
	body := v[:len(v)-sumLen]
	if sum(keyOf(b.Node), body) != binary.BigEndian.Uint32(v[len(body):]) {
		return b, fmt.Errorf("%w: the record of node %d has a wrong checksum", ErrCorrupt, b.Node)
	}
	b.Start = timeOf(binary.BigEndian.Uint64(v))
	b.GrantedUntil = timeOf(binary.BigEndian.Uint64(v[8:]))
	b.Version = binary.BigEndian.Uint64(v[16:])
	if holder := body[24:ownerAt]; [nonceLen]byte(holder) != [nonceLen]byte{} {
		b.Nonce = hex.EncodeToString(holder)
	}
	b.Owner = string(body[ownerAt:])
	return b, nil
}

func sum(key, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, body)
}

func unixOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func timeOf(unix uint64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(int64(unix), 0).UTC()
}
