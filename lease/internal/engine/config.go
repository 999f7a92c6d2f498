package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// configName is the name of the object that describes the store. Only calls of operators write it:
// Create, AddSecret and Replace.
const configName = "config"

// config is the object that describes the store.
type config struct {
	Format int
	lease.Description
	BlocksPerPage uint32
	Phase         phase
	// Place is the [driver.Object.Place] of this object when the store was created or replaced. It
	// is missing for one write of the creation: copies that are made then have the store's ID.
	Place string `json:",omitempty"`
	// Removed are the fingerprints of secrets that were removed last.
	Removed []string `json:",omitempty"`
	// Writes counts writes, so that no two states of the object are equal.
	Writes uint64
}

// phase is what an operator is doing with the store.
type phase string

const (
	creating  phase = "creating"  // some pages may be missing
	replacing phase = "replacing" // some pages may belong to an earlier history
	complete  phase = "complete"
)

// page returns the number of the page with the block at node.
func (c *config) page(node uint32) int { return int(node / c.BlockSize / c.BlocksPerPage) }

// numbers returns the numbers of the store's pages, in order.
func (c *config) numbers() (numbers []int) {
	for number := c.page(c.First); number <= c.page(c.First+c.Nodes-1); number++ {
		numbers = append(numbers, number)
	}
	return numbers
}

// blocks returns the nodes of a page.
func (c *config) blocks(number int) lease.Description {
	size := uint64(c.BlocksPerPage) * uint64(c.BlockSize)
	first := max(uint64(number)*size, uint64(c.First))
	end := min((uint64(number)+1)*size, uint64(c.First+c.Nodes))
	return lease.Description{First: uint32(first), Nodes: uint32(end - first),
		BlockSize: c.BlockSize}
}

// here returns an error if the store was created in another place.
func (c *config) here(place string) error {
	if c.Place == place || c.Place == "" || place == "" { // the server could not tell
		return nil
	}
	return fmt.Errorf("%w (at %q, and this is %q)", lease.ErrMoved, c.Place, place)
}

// is returns an error unless the store grants leases, here, and has this ID.
func (c *config) is(id, place string) error {
	return cmp.Or(c.grants(place), same(c.ID, id))
}

// grants returns an error unless the store grants leases, here.
func (c *config) grants(place string) error { return errors.Join(c.ready(), c.here(place)) }

// ready returns an error unless the store grants leases.
func (c *config) ready() error {
	switch c.Phase {
	case complete:
		return nil
	case replacing:
		return lease.ErrReplacing
	}
	return fmt.Errorf("%w: the creation of the store %s was interrupted", lease.ErrNoStore, c.ID)
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

// readConfig returns the store's description. If the store grants nothing, it returns an error as
// well. It keeps the description of a store that does for [Store.aboutBlock].
func (s *Store) readConfig(ctx context.Context) (*config, error) {
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

// current returns the description as it is now, if the store has the ID.
func (s *Store) current(ctx context.Context, id string) (*config, error) {
	c, err := s.readConfig(ctx)
	return c, cmp.Or(err, same(c.ID, id))
}

// same returns an error if a store has another ID.
func same(now, id string) error {
	if now == id {
		return nil
	}
	return fmt.Errorf("%w: %s instead of %q", lease.ErrReplaced, now, id)
}

// Describe implements [lease.Store]. It sends one request.
func (s *Store) Describe(ctx context.Context) (_ lease.Description, err error) {
	defer s.failed(ctx, &err, "describe")
	c, err := s.readConfig(ctx)
	return c.Description, err
}

// bytes returns the stored form of the object's next state.
func (c *config) bytes() ([]byte, error) {
	c.Writes++
	return seal(c)
}

// updateConfig changes the description. change changes what was read at a place, and reports
// whether it is to be written.
func (s *Store) updateConfig(ctx context.Context,
	change func(c *config, place string) (bool, error)) error {
	return s.update(ctx, configName, func(o driver.Object, _ bool) ([]byte, error) {
		c, err := parseConfig(o)
		if err != nil {
			return nil, err
		}
		if write, err := change(c, o.Place); err != nil || !write {
			return nil, err
		}
		return c.bytes()
	})
}
