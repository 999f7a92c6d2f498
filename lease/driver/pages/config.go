package pages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// configName is the object that describes the store. Only Create, AddSecret and
// Raise write it.
const configName = "config"

// config is that object.
type config struct {
	header
	Created       time.Time `json:"created"`
	First         uint32    `json:"first"`
	Nodes         uint32    `json:"nodes"`
	BlockSize     uint32    `json:"block_size"`
	BlocksPerPage uint32    `json:"blocks_per_page"`
	LongestTTL    int64     `json:"longest_ttl"` // seconds
	Raised        time.Time `json:"raised,omitzero"`
	Secrets       []string  `json:"secrets"`
	// Complete is set when every page exists.
	Complete bool `json:"complete"`
	// Writes makes every state of the object another one.
	Writes uint64 `json:"writes"`
}

func (c config) description() lease.Description {
	return lease.Description{
		ID: c.Store, Created: c.Created, First: c.First, Nodes: c.Nodes, BlockSize: c.BlockSize,
		LongestTTL: time.Duration(c.LongestTTL) * time.Second, Raised: c.Raised, Secrets: slices.Clone(c.Secrets),
	}
}

// shape divides nodes into blocks and blocks into pages.
type shape struct {
	lease.Description
	nodes   driver.NodeRange
	perPage uint32 // blocks
}

func newShape(c config) *shape {
	d := c.description()
	return &shape{Description: d, nodes: driver.RangeOf(d), perPage: c.BlocksPerPage}
}

// page returns the number of the page that has a block.
func (sh *shape) page(node uint32) int { return int(node / sh.nodes.BlockSize / sh.perPage) }

// numbers returns the numbers of the store's pages, in order.
func (sh *shape) numbers() []int {
	first := sh.page(sh.nodes.First)
	numbers := make([]int, sh.page(sh.nodes.First+sh.nodes.Nodes-1)-first+1)
	for i := range numbers {
		numbers[i] = first + i
	}
	return numbers
}

// blocks returns the nodes of a page.
func (sh *shape) blocks(number int) driver.NodeRange {
	size := sh.nodes.BlockSize
	first := max(uint32(number)*sh.perPage*size, sh.nodes.First)
	end := min((uint32(number)+1)*sh.perPage*size, sh.nodes.First+sh.nodes.Nodes)
	return driver.NodeRange{First: first, Nodes: end - first, BlockSize: size}
}

// setup returns the shape of the store, which never changes.
func (s *Store) setup(ctx context.Context) (*shape, error) {
	if sh := s.shape.Load(); sh != nil {
		return sh, nil
	}
	if _, _, err := s.readConfig(ctx); err != nil {
		return nil, err
	}
	return s.shape.Load(), nil
}

// readConfig reads the object that describes the store, together with its version. An interrupted
// creation is an error, with which it is returned too.
func (s *Store) readConfig(ctx context.Context) (c config, o Object, err error) {
	if o, err = s.server.Read(ctx, configName); err != nil {
		return c, o, err
	}
	used := s.shape.Load()
	if o.Version == "" {
		if used != nil {
			return c, o, fmt.Errorf("%w: the object %q is gone", lease.ErrReplaced, configName)
		}
		return c, o, errNoConfig
	}
	if _, err := open(configName, o.Data, &c); err != nil {
		return c, o, err
	}
	d := c.description()
	if err := driver.CheckDescription(d); err != nil || c.BlocksPerPage < 1 || c.BlocksPerPage > randflake.MaxNode+1 {
		return c, o, fmt.Errorf("%w: %s: %d blocks on a page, %w", ErrEdited, configName, c.BlocksPerPage, err)
	}
	if !c.Complete {
		return c, o, fmt.Errorf("%w; the creation of the store %s was interrupted: run the same command again", lease.ErrNoStore, d.ID)
	}
	s.shape.CompareAndSwap(nil, newShape(c))
	if used = s.shape.Load(); used.ID != d.ID {
		return c, o, fmt.Errorf("%w: it has the ID %s, and had %s", lease.ErrReplaced, d.ID, used.ID)
	}
	return c, o, nil
}

// Describe implements [lease.Store]. It is one request.
func (s *Store) Describe(ctx context.Context) (lease.Description, error) {
	c, _, err := s.readConfig(ctx)
	if err != nil {
		return c.description(), s.failed(ctx, "describe", err)
	}
	return c.description(), nil
}

// Create implements [lease.Admin]. It writes the object that describes the store, then every page,
// and then the first one again, as complete: before that nobody uses the store.
func (s *Store) Create(ctx context.Context, d lease.Description) error {
	if err := driver.CheckDescription(d); err != nil {
		return fmt.Errorf("%s: create: %w", s.layout.Name, err)
	}
	if err := s.create(ctx, d); err != nil {
		return s.failed(ctx, "create", err)
	}
	return nil
}

func (s *Store) create(ctx context.Context, d lease.Description) error {
	for begun := false; ; begun = true {
		stray, err := s.stray(ctx) // first: no page is written before the configuration
		if err != nil {
			return err
		}
		c, o, err := s.readConfig(ctx)
		switch {
		case c.Store != "" && c.Store != d.ID:
			return fmt.Errorf("%w, with the ID %s, created at %s", lease.ErrExists, c.Store, c.Created.Format(time.RFC3339))
		case !errors.Is(err, lease.ErrNoStore): // it exists, or is damaged
			return err
		case o.Version != "":
			return s.complete(ctx, c, o)
		case stray != "":
			return fmt.Errorf("%w: %s", lease.ErrExists, gone(stray))
		case begun:
			return fmt.Errorf("%w: the server acknowledged the object %q, which is not there", lease.ErrMisconfigured, configName)
		}
		if s.layout.Probe {
			if err := probe(ctx, s.server); err != nil {
				return err
			}
		}
		c = config{
			header: header{Format: format, Store: d.ID}, Created: d.Created.UTC().Truncate(time.Second),
			First: d.First, Nodes: d.Nodes, BlockSize: d.BlockSize, BlocksPerPage: s.layout.BlocksPerPage,
			LongestTTL: int64(d.LongestTTL / time.Second), Raised: d.Raised, Secrets: d.Secrets,
		}
		if err := s.writeConfig(ctx, c, o); err != nil && !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

// complete writes the pages of a store whose creation has begun, and then that they are complete.
func (s *Store) complete(ctx context.Context, c config, o Object) error {
	sh := newShape(c)
	numbers := sh.numbers()
	err := s.each(ctx, len(numbers), func(ctx context.Context, i int) error { return s.createPage(ctx, sh, numbers[i]) })
	if err != nil {
		return err
	}
	c.Complete = true
	if err := s.writeConfig(ctx, c, o); err != nil && !errors.Is(err, ErrChanged) {
		return err
	}
	_, _, err = s.readConfig(ctx) // or another operator has completed it
	return err
}

// errNoConfig is the error if there is no store, or only its pages.
var errNoConfig = fmt.Errorf("%w", lease.ErrNoStore)

// stray returns the name of a page, if there is one.
func (s *Store) stray(ctx context.Context) (string, error) {
	listed, err := s.server.List(ctx)
	for name := range listed {
		if strings.HasPrefix(name, pagePrefix) {
			return name, err
		}
	}
	return "", err
}

func gone(page string) string {
	return fmt.Sprintf("its pages are here, such as %s, but the object %q is gone: put it back, or create a new store elsewhere", page, configName)
}

func (s *Store) createPage(ctx context.Context, sh *shape, number int) error {
	p := &page{pageHeader: pageHeader{header: header{Format: format, Store: sh.ID}, Number: number}, nodes: sh.blocks(number)}
	if !sh.Raised.IsZero() {
		p.raise(sh.Raised)
	}
	data, err := p.bytes("")
	if err != nil {
		return err
	}
	_, err = s.server.Write(ctx, pageName(number), data, "")
	if errors.Is(err, ErrChanged) { // another operator, or an earlier try
		_, err = s.read(ctx, sh, number)
	}
	return err
}

func (s *Store) writeConfig(ctx context.Context, c config, o Object) error {
	c.Writes++
	data, err := seal(c)
	if err != nil {
		return err
	}
	_, err = s.server.Write(ctx, configName, data, o.Version)
	return err
}

// amend changes the description of the store, unless change finds nothing to change.
func (s *Store) amend(ctx context.Context, change func(c *config, now time.Time) bool) (config, error) {
	for try := 0; ; try++ {
		c, o, err := s.readConfig(ctx)
		if err != nil || !change(&c, o.Time) {
			return c, err
		}
		if err := s.writeConfig(ctx, c, o); !errors.Is(err, ErrChanged) {
			return c, err
		}
		if err := pause(ctx, try); err != nil {
			return c, err
		}
	}
}

// AddSecret implements [lease.Admin].
func (s *Store) AddSecret(ctx context.Context, fingerprint string) error {
	if err := driver.CheckFingerprint(fingerprint); err != nil {
		return fmt.Errorf("%s: %w", s.layout.Name, err)
	}
	_, err := s.amend(ctx, func(c *config, _ time.Time) bool {
		if slices.Contains(c.Secrets, fingerprint) {
			return false
		}
		c.Secrets = append(c.Secrets, fingerprint)
		return true
	})
	if err != nil {
		return s.failed(ctx, "add a secret", err)
	}
	return nil
}
