package engine

import (
	"context"

	"bytes"

	"github.com/traceflake/traceflake/lease/driver"
)

// ErrAltered is returned if a server did not store what was sent.
var ErrAltered = errAltered

const ClockBound = clockBound

// Sealed returns an object that was edited, with the right checksum.
func Sealed(data []byte) []byte {
	lines := data[:1+bytes.LastIndexByte(bytes.TrimRight(data, "\n"), '\n')]
	return append(bytes.Clone(lines), sumOf(lines)...)
}

// Help completes a begin that somebody else left in a store of one page, under its ID, as nobody
// may.
func Help(ctx context.Context, server driver.Objects) bool {
	o, err := server.Read(ctx, configName)
	if err != nil {
		return false
	}
	c, err := parseConfig(o)
	if err != nil || c.Complete {
		return false
	}
	page, err := server.Read(ctx, pageName(0))
	if err != nil {
		return false
	}
	var h pageHeader
	if _, err := unseal("", page.Data, &h); err != nil || h.Store != c.ID {
		empty := seal(pageHeader{Format: format, Store: c.ID})
		if _, err = server.Write(ctx, pageName(0), empty, page.Version, o.Place); err != nil {
			return false
		}
	}
	c.Complete = true
	_, err = server.Write(ctx, configName, seal(c), o.Version, o.Place)
	return err == nil
}
