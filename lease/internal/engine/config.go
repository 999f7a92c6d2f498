package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	err := errors.Join(c.ready(), c.here(place))
	if err == nil && c.ID != id {
		err = replaced(c.ID, id)
	}
	return err
}

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
	if _, err := unseal(configName, o.Data, c); err != nil {
		return &config{}, err
	}
	if err := checkDescription(c.Description); err != nil || c.BlocksPerPage < 1 ||
		c.BlocksPerPage > allNodes {
		return &config{},
			fmt.Errorf("%w: %s: %d blocks on a page, %w", driver.ErrEdited, configName,
				c.BlocksPerPage, err)
	}
	return c, nil
}

// readConfig returns the store's description. If the store grants nothing, it returns an error as
// well. It keeps the description of a store that does for [Store.about].
func (s *Store) readConfig(ctx context.Context) (*config, error) {
	o, err := s.objects.Read(ctx, configName)
	if err != nil {
		return &config{}, err
	}
	c, err := parseConfig(o)
	if err == nil {
		err = errors.Join(c.ready(), c.here(o.Place))
	}
	if err == nil {
		kept := *c // the caller may change its own
		s.known.Store(&kept)
	}
	return c, err
}

// about returns the description of the store with an ID: the nodes of an ID, and their pages, never
// change.
func (s *Store) about(ctx context.Context, id string) (*config, error) {
	if c := s.known.Load(); c != nil && c.ID == id {
		return c, nil
	}
	return s.current(ctx, id)
}

// current returns the description as it is now, if the store has the ID.
func (s *Store) current(ctx context.Context, id string) (*config, error) {
	c, err := s.readConfig(ctx)
	if err == nil && c.ID != id {
		err = replaced(c.ID, id)
	}
	return c, err
}

func replaced(by, id string) error {
	return fmt.Errorf("%w: %s instead of %q", lease.ErrReplaced, by, id)
}

// Describe implements [lease.Store]. It sends one request.
func (s *Store) Describe(ctx context.Context) (_ lease.Description, err error) {
	defer s.failed(ctx, &err, "describe")
	c, err := s.readConfig(ctx)
	return c.Description, err
}

// stray returns the name of a page that exists, or "".
func (s *Store) stray(ctx context.Context) (string, error) {
	listed, err := s.objects.List(ctx)
	names := slices.Sorted(maps.Keys(listed))
	if i, _ := slices.BinarySearch(names, pagePrefix); i < len(names) &&
		strings.HasPrefix(names[i], pagePrefix) {
		return names[i], err
	}
	return "", err
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
