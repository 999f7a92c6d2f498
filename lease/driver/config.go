package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// configName is the object that describes the store. Only Create, AddSecret and
// Raise write it.
const configName = "config"

// config is that object.
type config struct {
	Format int
	lease.Description
	BlocksPerPage uint32
	// Complete is set when every page exists.
	Complete bool
	// Writes makes every state of the object another one.
	Writes uint64
}

func (c *config) nodes() NodeRange { return RangeOf(c.Description) }

// page returns the number of the page that has a block.
func (c *config) page(node uint32) int { return int(node / c.BlockSize / c.BlocksPerPage) }

// numbers returns the numbers of the store's pages, in order.
func (c *config) numbers() (numbers []int) {
	for number := c.page(c.First); number <= c.page(c.First+c.Nodes-1); number++ {
		numbers = append(numbers, number)
	}
	return numbers
}

// blocks returns the nodes of a page.
func (c *config) blocks(number int) NodeRange {
	size := c.BlocksPerPage * c.BlockSize
	first := max(uint32(number)*size, c.First)
	end := min((uint32(number)+1)*size, c.First+c.Nodes)
	return NodeRange{First: first, Nodes: end - first, BlockSize: c.BlockSize}
}

// setup returns the store's configuration as this client first read it: the nodes and their pages
// never change.
func (s *store) setup(ctx context.Context) (*config, error) {
	if c := s.used.Load(); c != nil {
		return c, nil
	}
	_, err := s.readConfig(ctx)
	return s.used.Load(), err
}

func (s *store) readConfig(ctx context.Context) (*config, error) {
	o, err := s.server.Read(ctx, configName)
	if err != nil {
		return &config{}, err
	}
	return s.parseConfig(o)
}

// parseConfig reads the object that describes the store. If the creation was interrupted it returns
// both the description and an error.
func (s *store) parseConfig(o Object) (*config, error) {
	c := &config{}
	if o.Version == "" {
		if s.used.Load() != nil {
			return c, fmt.Errorf("%w: the object %q is gone", lease.ErrReplaced, configName)
		}
		return c, lease.ErrNoStore
	}
	if _, err := open(configName, o.Data, c); err != nil {
		return c, err
	}
	if err := CheckDescription(c.Description); err != nil || c.BlocksPerPage < 1 || c.BlocksPerPage > randflake.MaxNode+1 {
		return c, fmt.Errorf("%w: %s: %d blocks on a page, %w", ErrEdited, configName, c.BlocksPerPage, err)
	}
	if !c.Complete {
		return c, fmt.Errorf("%w; the creation of the store %s was interrupted: run the same command again", lease.ErrNoStore, c.ID)
	}
	first := *c // which a caller may change
	if !s.used.CompareAndSwap(nil, &first) && s.used.Load().ID != c.ID {
		return c, fmt.Errorf("%w: it has the ID %s, and had %s", lease.ErrReplaced, c.ID, s.used.Load().ID)
	}
	return c, nil
}

// Describe implements [lease.Store]. It is one request.
func (s *store) Describe(ctx context.Context) (_ lease.Description, err error) {
	defer s.failed(ctx, &err, "describe")
	c, err := s.readConfig(ctx)
	return c.Description, err
}

// Create implements [lease.Admin]. It writes the object that describes the store, then every page,
// and then the first one again, as complete: before that nobody uses the store.
func (s *store) Create(ctx context.Context, d lease.Description) (err error) {
	defer s.failed(ctx, &err, "create")
	if err := CheckDescription(d); err != nil {
		return err
	}
	stray, err := s.stray(ctx) // first: no page is written before the configuration
	if err != nil {
		return err
	}
	begun := false
	step := func(o Object, _ bool) ([]byte, error) {
		c, err := s.parseConfig(o)
		switch {
		case c.ID != "" && c.ID != d.ID:
			return nil, fmt.Errorf("%w, with the ID %s, created at %s", lease.ErrExists, c.ID, c.Created.Format(time.RFC3339))
		case !errors.Is(err, lease.ErrNoStore): // it exists, or is damaged
			return nil, err
		case o.Version != "":
			if err := s.createPages(ctx, c); err != nil {
				return nil, err
			}
			c.Complete = true
		case stray != "":
			return nil, fmt.Errorf("%w: its pages are here, such as %s, but the object %q is gone: put it back, or create a new store elsewhere",
				lease.ErrExists, stray, configName)
		case begun:
			return nil, fmt.Errorf("%w: the server acknowledged the object %q, which is not there", lease.ErrMisconfigured, configName)
		default:
			if s.layout.Probe {
				if err := probe(ctx, s.server); err != nil {
					return nil, err
				}
			}
			begun = true
			c = &config{Format: format, Description: d, BlocksPerPage: s.layout.BlocksPerPage}
		}
		return c.bytes()
	}
	for range 2 { // it is begun, if nobody has, and then completed
		if err := s.update(ctx, configName, step); err != nil {
			return err
		}
	}
	return nil
}

// stray returns the name of a page, if there is one.
func (s *store) stray(ctx context.Context) (string, error) {
	listed, err := s.server.List(ctx)
	for name := range listed {
		if strings.HasPrefix(name, pagePrefix) {
			return name, err
		}
	}
	return "", err
}

func (s *store) createPages(ctx context.Context, c *config) error {
	return s.each(ctx, c.numbers(), func(ctx context.Context, _, number int) error {
		p := &page{pageHeader: pageHeader{Format: format, Store: c.ID, Number: number}, nodes: c.blocks(number)}
		if !c.Raised.IsZero() {
			p.raise(c.Raised)
		}
		data, err := p.bytes("")
		if err != nil {
			return err
		}
		_, err = s.server.Write(ctx, pageName(number), data, "")
		if errors.Is(err, ErrChanged) { // another operator, or an earlier try
			_, err = s.read(ctx, c, number)
		}
		return err
	})
}

// bytes returns the object's next state as it is stored.
func (c *config) bytes() ([]byte, error) {
	c.Writes++
	return seal(c)
}

// amend changes the description of the store, unless change finds nothing to change.
func (s *store) amend(ctx context.Context, change func(c *config, now time.Time) bool) (c *config, err error) {
	err = s.update(ctx, configName, func(o Object, _ bool) ([]byte, error) {
		if c, err = s.parseConfig(o); err != nil || !change(c, o.Time) {
			return nil, err
		}
		return c.bytes()
	})
	return c, err
}

// AddSecret implements [lease.Admin].
func (s *store) AddSecret(ctx context.Context, fingerprint string) (err error) {
	defer s.failed(ctx, &err, "add a secret")
	if err := CheckFingerprint(fingerprint); err != nil {
		return err
	}
	_, err = s.amend(ctx, func(c *config, _ time.Time) bool {
		if slices.Contains(c.Secrets, fingerprint) {
			return false
		}
		c.Secrets = append(c.Secrets, fingerprint)
		return true
	})
	return err
}
