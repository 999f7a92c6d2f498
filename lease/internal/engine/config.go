package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// configName is the name of the object that describes the store. Only Create, AddSecret, Raise and
// MovedHere write it.
const configName = "config"

// config is the object that describes the store.
type config struct {
	Format int
	lease.Description
	BlocksPerPage uint32
	// Complete is set when every page exists.
	Complete bool
	// Raising is set from the beginning of a raise until every page was raised.
	Raising bool
	// Place is the [Object.Place] of this object when the store was created or moved.
	Place string `json:",omitempty"`
	// Writes counts writes, so that no two states of the object are equal.
	Writes uint64
}

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

// used is the store that a client uses. Until its first call other than Describe it follows what
// Describe finds, so that an operator may replace a store that the process refuses.
type used struct {
	mu    sync.Mutex
	c     *config
	bound bool
	fresh bool // Describe found it complete, and no Acquire was called since
}

// config returns the store in use, or nil, and binds the client to it.
func (u *used) config() *config {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bound = u.bound || u.c != nil
	return u.c
}

// unread returns the store in use if Describe has just read it, or nil.
func (u *used) unread() *config {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.fresh {
		return nil
	}
	u.bound, u.fresh = true, false
	return u.c
}

// accept compares the result of reading the configuration with the store in use.
func (u *used) accept(c *config, err error, describes bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.bound && c.ID == "" && errors.Is(err, lease.ErrNoStore):
		return fmt.Errorf("%w: the object %q is gone", lease.ErrReplaced, configName)
	case err != nil:
		return err
	case u.bound && u.c.ID != c.ID:
		return fmt.Errorf("%w: it has the ID %s, and had %s", lease.ErrReplaced, c.ID, u.c.ID)
	}
	kept := *c // the caller may change its own
	u.c, u.bound, u.fresh = &kept, u.bound || !describes, describes && !c.Raising
	return nil
}

// setup returns the store's configuration as this client read it last: the nodes and their pages
// never change.
func (s *Store) setup(ctx context.Context) (*config, error) {
	if c := s.used.config(); c != nil {
		return c, nil
	}
	return s.readConfig(ctx, false)
}

// ready returns the configuration of a store that grants leases.
func (s *Store) ready(ctx context.Context) (*config, error) {
	if c := s.used.unread(); c != nil {
		return c, nil
	}
	c, err := s.readConfig(ctx, false)
	if err == nil && c.Raising {
		err = raising(c)
	}
	return c, err
}

func (s *Store) readConfig(ctx context.Context, describes bool) (*config, error) {
	o, err := s.objects.Read(ctx, configName)
	if err != nil {
		return &config{}, err
	}
	c, err := parseConfig(o)
	if err == nil {
		err = c.here(o.Place)
	}
	return c, s.used.accept(c, err, describes)
}

// here returns an error if the store was created in another place.
func (c *config) here(place string) error {
	if c.Place == place || c.Place == "" || place == "" { // the server could not tell
		return nil
	}
	return fmt.Errorf("%w (it was created at %q, and this is %q)", lease.ErrMoved, c.Place, place)
}

// parseConfig reads the object that describes the store. If the creation was interrupted it returns
// both the description and an error.
func parseConfig(o driver.Object) (*config, error) {
	c := &config{}
	if o.Version == "" {
		return c, lease.ErrNoStore
	}
	if _, err := open(configName, o.Data, c); err != nil {
		return c, err
	}
	if err := checkDescription(c.Description); err != nil || c.BlocksPerPage < 1 ||
		c.BlocksPerPage > allNodes {
		return &config{},
			fmt.Errorf("%w: %s: %d blocks on a page, %w", driver.ErrEdited, configName, c.BlocksPerPage,
				err)
	}
	if !c.Complete {
		return c, fmt.Errorf(
			"%w; the creation of the store %s was interrupted: run the same command again",
			lease.ErrNoStore, c.ID)
	}
	return c, nil
}

func raising(c *config) error {
	return fmt.Errorf("%w, to %s", lease.ErrRaising, text(c.Raised))
}

// Describe implements [lease.Store]. It sends one request.
func (s *Store) Describe(ctx context.Context) (_ lease.Description, err error) {
	defer s.failed(ctx, &err, "describe")
	c, err := s.readConfig(ctx, true)
	if err == nil && c.Raising {
		err = raising(c)
	}
	return c.Description, err
}

// Create implements [stores.Store]. It writes the object that describes the store, then every page, and
// then the first object again, as complete: before that nobody uses the store.
func (s *Store) Create(ctx context.Context, d lease.Description) (err error) {
	defer s.failed(ctx, &err, "create")
	if d, err = NewDescription(d); err != nil {
		return err
	}
	stray, err := s.stray(ctx) // first: no page is written before the configuration
	if err != nil {
		return err
	}
	for e, begun := s.edit(configName), false; ; begun = true {
		o, err := e.get(ctx)
		if err != nil {
			return err
		}
		c, err := parseConfig(o)
		switch {
		case c.ID != "" && c.ID != d.ID:
			return fmt.Errorf("%w, with the ID %s, created at %s", lease.ErrExists, c.ID,
				c.Created.Format(time.RFC3339))
		case err == nil: // it exists
			return errors.Join(c.here(o.Place), s.whole(ctx, c))
		case !errors.Is(err, lease.ErrNoStore): // it is damaged
			return err
		case o.Version != "":
			c.Complete, c.Place = true, o.Place
			err = s.createPages(ctx, c)
		case begun:
			err = fmt.Errorf("%w: the server acknowledged the object %q, which is not there",
				lease.ErrMisconfigured, configName)
		default:
			c = &config{Format: format, Description: d, BlocksPerPage: s.layout.BlocksPerPage}
			err = s.mayBegin(ctx, stray)
		}
		if err != nil {
			return err
		}
		if done, err := e.writeConfig(ctx, c); err != nil || done && c.Complete {
			return err
		}
	}
}

// mayBegin returns an error if pages of another store exist here, or if the server is unfit.
func (s *Store) mayBegin(ctx context.Context, stray string) error {
	if stray != "" {
		return fmt.Errorf("%w: its pages are here, such as %s, but the object %q is gone: put it "+
			"back, or create a new store elsewhere",
			lease.ErrExists, stray, configName)
	}
	if !s.layout.Probe {
		return nil
	}
	if err := probe(ctx, s.objects); err != nil {
		return fmt.Errorf("trying out the server with the object %q: %w", probeName, err)
	}
	return nil
}

// whole returns an error if pages of the store are missing.
func (s *Store) whole(ctx context.Context, c *config) error {
	listed, err := s.objects.List(ctx)
	for _, number := range c.numbers() {
		if _, ok := listed[pageName(number)]; err == nil && !ok {
			_, err = parse(c, number, driver.Object{}) // which says so
		}
	}
	return err
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

func (s *Store) createPages(ctx context.Context, c *config) error {
	_, err := each(ctx, c.numbers(), func(ctx context.Context, number int) (o driver.Object, err error) {
		p := &page{pageHeader: pageHeader{Format: format, Store: c.ID, Number: number},
			nodes: c.blocks(number)}
		if !c.Raised.IsZero() {
			p.raise(c.Raised)
		}
		data, err := p.bytes("")
		if err != nil {
			return o, err
		}
		o, err = s.objects.Write(ctx, pageName(number), data, "")
		if errors.Is(err, driver.ErrChanged) { // another operator, or an earlier try
			_, err = s.read(ctx, c, number)
		}
		return o, err
	})
	return err
}

// bytes returns the stored form of the object's next state.
func (c *config) bytes() ([]byte, error) {
	c.Writes++
	return seal(c)
}

// readConfig is the first step of a change of the description. movedHere says that the store may
// have been moved here.
func (e *edit) readConfig(ctx context.Context, movedHere bool) (*config, error) {
	o, err := e.get(ctx)
	if err != nil {
		return nil, err
	}
	c, err := parseConfig(o)
	if err == nil && !movedHere {
		err = c.here(o.Place)
	}
	return c, e.s.used.accept(c, err, false)
}

// writeConfig is the second step of a change of the description.
func (e *edit) writeConfig(ctx context.Context, c *config) (done bool, err error) {
	data, err := c.bytes()
	if err != nil {
		return false, err
	}
	return e.set(ctx, data)
}

// AddSecret implements [stores.Store].
func (s *Store) AddSecret(ctx context.Context, fingerprint string) (err error) {
	defer s.failed(ctx, &err, "add a secret")
	if err := checkFingerprint(fingerprint); err != nil {
		return err
	}
	for e := s.edit(configName); ; {
		c, err := e.readConfig(ctx, false)
		if err != nil || slices.Contains(c.Secrets, fingerprint) {
			return err
		}
		c.Secrets = append(c.Secrets, fingerprint)
		if done, err := e.writeConfig(ctx, c); done || err != nil {
			return err
		}
	}
}
