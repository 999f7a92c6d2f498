package pages

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// configName is the object that fixes how nodes are divided. It is created
// before the first page, and read again before any page is created. A page that
// exists says the same of itself: so no process writes with another division.
const configName = "config"

// shape divides nodes into blocks and blocks into pages. The pages of clients
// with different ranges of nodes are the same.
type shape struct {
	nodes   driver.NodeRange // this client's
	perPage uint32           // blocks
}

func (sh shape) header() header {
	return header{Format: format, BlockSize: sh.nodes.BlockSize, BlocksPerPage: sh.perPage}
}

func (sh shape) String() string {
	return fmt.Sprintf("blocks of %d nodes, %d on a page", sh.nodes.BlockSize, sh.perPage)
}

// page returns the number of the page that has a block.
func (sh shape) page(node uint32) int { return int(node / sh.nodes.BlockSize / sh.perPage) }

// pages returns the number of the client's first page, and how many it has.
func (sh shape) pages() (first, n int) {
	first = sh.page(sh.nodes.First)
	return first, sh.page(sh.nodes.First+sh.nodes.Nodes-1) - first + 1
}

// blocks returns the nodes of a page, those of other clients included.
func (sh shape) blocks(number int) driver.NodeRange {
	before := uint32(number) * sh.perPage
	size := sh.nodes.BlockSize
	n := min(sh.perPage, (randflake.MaxNode+1)/size-before)
	return driver.NodeRange{First: before * size, Nodes: n * size, BlockSize: size}
}

var errNoConfig = fmt.Errorf("the object %q is missing; was it deleted? Put it back", configName)

// setup returns the shape of the store. Until there is a configuration it is
// read by every call, which assumes the shape that it would be given.
func (s *Store) setup(ctx context.Context) (shape, error) {
	if known := s.known.Load(); known != nil {
		return *known, nil
	}
	sh, err := s.readConfig(ctx)
	if errors.Is(err, errNoConfig) {
		nodes, err := s.asked.Resolve(0)
		return shape{nodes, s.layout.BlocksPerPage}, err
	}
	return sh, err
}

// readConfig reads the configuration.
func (s *Store) readConfig(ctx context.Context) (shape, error) {
	o, err := s.server.Read(ctx, configName)
	if err != nil {
		return shape{}, err
	}
	if o.Version == "" {
		return shape{}, errNoConfig
	}
	var c header
	if _, err := open(configName, o.Data, &c); err != nil {
		return shape{}, err
	}
	if c.BlockSize < 1 || c.BlocksPerPage < 1 || c.BlocksPerPage > randflake.MaxNode+1 {
		return shape{}, fmt.Errorf("%w: %s has blocks of %d nodes, %d on a page", ErrEdited, configName, c.BlockSize, c.BlocksPerPage)
	}
	nodes, err := s.asked.Resolve(c.BlockSize)
	if err != nil {
		return shape{}, err
	}
	sh := shape{nodes, c.BlocksPerPage}
	if !s.known.CompareAndSwap(nil, &sh) && *s.known.Load() != sh {
		return shape{}, fmt.Errorf("%w: %s has %s, and had %s: was the store replaced? Restart this process",
			lease.ErrBlockSize, configName, sh, *s.known.Load())
	}
	return sh, nil
}

// configure makes sure, before a page is created, that the store is configured.
// It returns the shape of the store, which another client may have given it
// meanwhile. A store whose configuration was deleted gets no other one.
func (s *Store) configure(ctx context.Context, sh shape) (shape, error) {
	isNew := s.known.Load() == nil
	got, err := s.readConfig(ctx)
	if !isNew || !errors.Is(err, errNoConfig) {
		return got, err
	}
	listed, err := s.server.List(ctx)
	if err != nil {
		return shape{}, err
	}
	for name := range listed {
		if strings.HasPrefix(name, pagePrefix) {
			return s.readConfig(ctx) // it was created just now, or deleted
		}
	}
	data, err := seal(sh.header())
	if err == nil {
		err = s.trustNew(ctx)
	}
	if err != nil {
		return shape{}, err
	}
	if _, err := s.server.Write(ctx, configName, data, ""); err != nil && !errors.Is(err, ErrChanged) {
		return shape{}, err
	}
	return s.readConfig(ctx)
}
