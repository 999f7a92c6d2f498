package servers

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Reads is what ClickHouse counted in system.events while a statement ran. Any
// concurrent statement counts, too.
type Reads struct {
	Rows         uint64 // taken from tables, uncompressed
	Bytes        uint64 // of these rows, uncompressed
	Decompressed uint64 // bytes that came out of compressed blocks, which hold more than these rows
	Disk         uint64 // bytes read from files, compressed: columns, marks and indexes
	Wall         time.Duration
}

const readEvents = `SELECT sumIf(value, event = 'SelectedRows'), sumIf(value, event = 'SelectedBytes'),
	sumIf(value, event = 'CompressedReadBufferBytes'), sumIf(value, event = 'ReadBufferFromFileDescriptorReadBytes')
FROM system.events`

// Reads runs one statement without a FORMAT clause, holds its result and counts
// what it read with ClickHouse's caches empty. The cost of reading the counts is subtracted.
func (e *Engine) Reads(ctx context.Context, statement string) (Result, Reads, error) {
	for _, cache := range []string{"MARK", "UNCOMPRESSED", "INDEX MARK", "INDEX UNCOMPRESSED", "QUERY CONDITION"} {
		if _, err := e.Query(ctx, "SYSTEM DROP "+cache+" CACHE"); err != nil {
			return Result{}, Reads{}, err
		}
	}
	var before, again, after [4]uint64
	if err := e.events(ctx, &before); err != nil {
		return Result{}, Reads{}, err
	}
	if err := e.events(ctx, &again); err != nil {
		return Result{}, Reads{}, err
	}
	start := time.Now()
	result, err := e.Query(ctx, statement)
	wall := time.Since(start)
	if err != nil {
		return Result{}, Reads{}, err
	}
	if err := e.events(ctx, &after); err != nil {
		return Result{}, Reads{}, err
	}
	var n [4]uint64
	for i := range n {
		all, own := after[i]-again[i], again[i]-before[i]
		n[i] = all - min(own, all)
	}
	return result, Reads{n[0], n[1], n[2], n[3], wall}, nil
}

func (e *Engine) events(ctx context.Context, into *[4]uint64) error {
	r, err := e.Query(ctx, readEvents)
	if err != nil {
		return err
	}
	for i := range into {
		if into[i], err = strconv.ParseUint(r.Rows[0][i], 10, 64); err != nil {
			return fmt.Errorf("servers: read system.events: %w", err)
		}
	}
	return nil
}
