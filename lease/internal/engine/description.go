package engine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// configName is the name of the object that describes the store. Only a begin of a history writes
// it.
const configName = "config"

// config is the object that describes the store.
type config struct {
	Format int
	lease.Description
	BlocksPerPage uint32
	// Complete is set when every page belongs to the history: before that, nothing is granted.
	Complete bool
	// Place is where the history was begun, a [driver.Object.Place].
	Place string

	secret *randflake.Codec // of a history that is being begun, nil in a store without one
}

// page returns the number of the page with the block at node.
func (c *config) page(node uint32) int {
	return int((node - c.First) / c.BlockSize / c.BlocksPerPage)
}

// pages returns how many pages the store has.
func (c *config) pages() int { return c.page(c.First+c.Nodes-1) + 1 }

// blocks returns the nodes of a page.
func (c *config) blocks(number int) lease.Description {
	size := uint64(c.BlocksPerPage) * uint64(c.BlockSize)
	first, end := uint64(c.First)+uint64(number)*size, uint64(c.First+c.Nodes)
	return lease.Description{First: uint32(first), Nodes: uint32(min(size, end-first)),
		BlockSize: c.BlockSize}
}

// grants returns an error unless the store grants leases at a place.
func (c *config) grants(place string) error {
	switch {
	case c.uncreated():
		return fmt.Errorf("%w: its creation was interrupted", lease.ErrNoStore)
	case !c.Complete:
		return fmt.Errorf("%w: %s", lease.ErrBeginning, c.ID)
	}
	return c.here(place)
}

// uncreated reports whether the store never had a complete history.
func (c *config) uncreated() bool { return !c.Complete && len(c.Earlier) == 0 }

// here returns an error unless the history was begun at a place. An unknown place equals nothing.
func (c *config) here(place string) error {
	if place != "" && place == c.Place {
		return nil
	}
	err := fmt.Errorf("%w (at %q, and this is %q)", lease.ErrMoved, c.Place, place)
	if c.Keyless {
		return &lease.Error{Err: fmt.Errorf("%w: %w", lease.ErrMisconfigured, err), Fix: fixKeyless}
	}
	return err
}

const fixKeyless = "stop all processes that lease from the store, or from the store of which it " +
	"is a copy, wait for the longest lease, then: traceflake lease rekey"

// is returns an error if this is another history.
func (c *config) is(id string) error {
	if c.ID == id {
		return nil
	}
	return fmt.Errorf("%w: %s instead of %q", lease.ErrHistory, c.ID, id)
}

// parseConfig reads the object that describes the store.
func parseConfig(o driver.Object) (*config, error) {
	c := &config{}
	if o.Version == "" {
		return c, lease.ErrNoStore
	}
	_, err := unseal(configName, o.Data, c)
	if err == nil {
		err = cmp.Or(checkPages(c.BlocksPerPage), checkDescription(c.Description))
		if err != nil {
			err = edited("%s: %w", configName, err)
		}
	}
	if err != nil {
		return &config{}, err
	}
	return c, nil
}

// describe returns the store's description, also together with an error if the store grants
// nothing. It keeps one that does for about.
func (s *Store) describe(ctx context.Context) (*config, error) {
	o, err := s.objects.Read(ctx, configName)
	if err != nil {
		return &config{}, err
	}
	c, err := parseConfig(o)
	if err == nil {
		err = c.grants(o.Place)
	}
	if err == nil {
		s.known.Store(c)
	}
	return c, err
}

// about returns the description of a history. What matters of it never changes: its nodes, pages
// and place. So it may be the one that was read last.
func (s *Store) about(ctx context.Context, id string) (*config, error) {
	if c := s.known.Load(); c != nil && c.ID == id {
		return c, nil
	}
	c, err := s.describe(ctx)
	return c, cmp.Or(err, c.is(id))
}
