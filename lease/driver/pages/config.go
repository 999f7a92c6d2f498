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
func (s *store) setup(ctx context.Context) (*shape, error) {
	if sh := s.shape.Load(); sh != nil {
		return sh, nil
	}
	if _, err := s.readConfig(ctx); err != nil {
		return nil, err
	}
	return s.shape.Load(), nil
}

func (s *store) readConfig(ctx context.Context) (config, error) {
	o, err := s.server.Read(ctx, configName)
	if err != nil {
		return config{}, err
	}
	return s.parseConfig(o)
}

// parseConfig reads the object that describes the store. If the creation was interrupted it returns
// both the description and an error.
func (s *store) parseConfig(o Object) (c config, err error) {
	used := s.shape.Load()
	if o.Version == "" {
		if used != nil {
			return c, fmt.Errorf("%w: the object %q is gone", lease.ErrReplaced, configName)
		}
		return c, errNoConfig
	}
	if _, err = open(configName, o.Data, &c); err != nil {
		return c, err
	}
	d := c.description()
	if err = driver.CheckDescription(d); err != nil || c.BlocksPerPage < 1 || c.BlocksPerPage > randflake.MaxNode+1 {
		return c, fmt.Errorf("%w: %s: %d blocks on a page, %w", ErrEdited, configName, c.BlocksPerPage, err)
	}
	if !c.Complete {
		return c, fmt.Errorf("%w; the creation of the store %s was interrupted: run the same command again", lease.ErrNoStore, d.ID)
	}
	s.shape.CompareAndSwap(nil, newShape(c))
	if used = s.shape.Load(); used.ID != d.ID {
		return c, fmt.Errorf("%w: it has the ID %s, and had %s", lease.ErrReplaced, d.ID, used.ID)
	}
	return c, nil
}

// Describe implements [lease.Store]. It is one request.
func (s *store) Describe(ctx context.Context) (_ lease.Description, err error) {
	defer s.failed(ctx, &err, "describe")
	c, err := s.readConfig(ctx)
	return c.description(), err
}

// Create implements [lease.Admin]. It writes the object that describes the store, then every page,
// and then the first one again, as complete: before that nobody uses the store.
func (s *store) Create(ctx context.Context, d lease.Description) (err error) {
	defer s.failed(ctx, &err, "create")
	if err := driver.CheckDescription(d); err != nil {
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
		case c.Store != "" && c.Store != d.ID:
			return nil, fmt.Errorf("%w, with the ID %s, created at %s", lease.ErrExists, c.Store, c.Created.Format(time.RFC3339))
		case !errors.Is(err, lease.ErrNoStore): // it exists, or is damaged
			return nil, err
		case o.Version != "":
			if err := s.createPages(ctx, newShape(c)); err != nil {
				return nil, err
			}
			c.Complete = true
		case stray != "":
			return nil, fmt.Errorf("%w: %s", lease.ErrExists, gone(stray))
		case begun:
			return nil, fmt.Errorf("%w: the server acknowledged the object %q, which is not there", lease.ErrMisconfigured, configName)
		default:
			if s.layout.Probe {
				if err := probe(ctx, s.server); err != nil {
					return nil, err
				}
			}
			begun = true
			c = config{
				header: header{Format: format, Store: d.ID}, Created: d.Created.UTC().Truncate(time.Second),
				First: d.First, Nodes: d.Nodes, BlockSize: d.BlockSize, BlocksPerPage: s.layout.BlocksPerPage,
				LongestTTL: int64(d.LongestTTL / time.Second), Raised: d.Raised, Secrets: d.Secrets,
			}
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

// errNoConfig is the error if there is no store, or only its pages.
var errNoConfig = fmt.Errorf("%w", lease.ErrNoStore)

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

func gone(page string) string {
	return fmt.Sprintf("its pages are here, such as %s, but the object %q is gone: put it back, or create a new store elsewhere", page, configName)
}

func (s *store) createPages(ctx context.Context, sh *shape) error {
	return s.each(ctx, sh.numbers(), func(ctx context.Context, _, number int) error {
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
	})
}

// bytes returns the object's next state as it is stored.
func (c config) bytes() ([]byte, error) {
	c.Writes++
	return seal(c)
}

// amend changes the description of the store, unless change finds nothing to change.
func (s *store) amend(ctx context.Context, change func(c *config, now time.Time) bool) (c config, err error) {
	err = s.update(ctx, configName, func(o Object, _ bool) ([]byte, error) {
		if c, err = s.parseConfig(o); err != nil || !change(&c, o.Time) {
			return nil, err
		}
		return c.bytes()
	})
	return c, err
}

// AddSecret implements [lease.Admin].
func (s *store) AddSecret(ctx context.Context, fingerprint string) (err error) {
	defer s.failed(ctx, &err, "add a secret")
	if err := driver.CheckFingerprint(fingerprint); err != nil {
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
