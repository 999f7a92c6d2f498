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

// Create implements [stores.Store]. It writes the object that describes the store, adds the place,
// which some servers know only now, writes every page, and then marks the store as complete: before
// that nobody uses it. Each step can be repeated, also by two operators at once.
func (s *Store) Create(ctx context.Context, d lease.Description) (err error) {
	defer s.failed(ctx, &err, "create")
	if d, err = NewDescription(d); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := s.begin(ctx, d); err != nil {
		return err
	}
	if err := s.place(ctx, d.ID); err != nil {
		return err
	}
	return s.finish(ctx, d.ID, creating, s.createPage)
}

// prepare lets the backend create what it needs, if it needs anything.
func (s *Store) prepare(ctx context.Context) error {
	_, err := send(ctx, s.objects, func(ctx context.Context) (none struct{}, err error) {
		if o, ok := s.objects.Objects.(interface{ Prepare(context.Context) error }); ok {
			err = o.Prepare(ctx)
		}
		return none, err
	})
	return err
}

// begin creates the object that describes the store, unless an earlier call has.
func (s *Store) begin(ctx context.Context, d lease.Description) error {
	listed, err := s.objects.List(ctx) // first: no page is written before the description
	if err != nil {
		return err
	}
	o, err := s.objects.Read(ctx, configName)
	if err != nil || o.Version != "" {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if strings.HasPrefix(name, pagePrefix) {
			return fmt.Errorf("%w: %w: its pages are here, such as %s, but the object %q is gone",
				lease.ErrExists, driver.ErrEdited, name, configName)
		}
	}
	if s.layout.Probe {
		if err := probe(ctx, s.objects); err != nil {
			return fmt.Errorf("trying out the server with the object %q: %w", probeName, err)
		}
	}
	c := &config{Format: format, Description: d, BlocksPerPage: s.layout.BlocksPerPage,
		Phase: creating}
	data, err := c.bytes()
	if err != nil {
		return err
	}
	if _, err = s.objects.Write(ctx, configName, data, ""); errors.Is(err, driver.ErrChanged) {
		return nil // by another operator, or by an earlier try
	}
	return err
}

// place adds the place to the description of a store whose creation has begun, before any page is
// written: so nobody completes a copy.
func (s *Store) place(ctx context.Context, id string) error {
	err := s.updateConfig(ctx, func(c *config, place string) (bool, error) {
		switch {
		case c.ID != id:
			return false, fmt.Errorf("%w, with the ID %s, created at %s", lease.ErrExists, c.ID,
				text(c.Created))
		case c.Phase != creating || c.Place != "":
			return false, nil
		}
		c.Place = place
		return place != "", nil
	})
	if errors.Is(err, lease.ErrNoStore) {
		err = fmt.Errorf("%w: the server acknowledged the object %q, which is not there",
			lease.ErrMisconfigured, configName)
	}
	return err
}

// finish writes every page of a store that is in a phase, and marks the store as complete.
func (s *Store) finish(ctx context.Context, id string, during phase,
	write func(ctx context.Context, c *config, number int) error) error {
	return s.updateConfig(ctx, func(c *config, place string) (bool, error) {
		here, other := c.here(place), same(c.ID, id)
		switch {
		case other != nil:
			return false, other
		case c.Phase == complete:
			return false, here
		case c.Phase != during:
			return false, c.ready()
		case here != nil:
			return false, &lease.Error{Err: here,
				Fix: "delete this incomplete copy, and create a store"}
		}
		c.Phase = complete
		return true, s.writePages(ctx, c, write)
	})
}

func (s *Store) writePages(ctx context.Context, c *config,
	write func(ctx context.Context, c *config, number int) error) error {
	return each(ctx, c.numbers(), func(ctx context.Context, _, number int) error {
		return write(ctx, c, number)
	})
}

// createPage creates a page, unless an earlier try or another operator has.
func (s *Store) createPage(ctx context.Context, c *config, number int) error {
	data, err := newPage(c, number).bytes("")
	if err != nil {
		return err
	}
	_, err = s.objects.Write(ctx, pageName(number), data, "")
	if errors.Is(err, driver.ErrChanged) {
		_, err = s.read(ctx, c, number)
	}
	return err
}

// AddSecret implements [stores.Store].
func (s *Store) AddSecret(ctx context.Context, id, fingerprint string) (err error) {
	defer s.failed(ctx, &err, "add a secret")
	if err := checkFingerprint(fingerprint); err != nil {
		return err
	}
	return s.updateConfig(ctx, func(c *config, place string) (bool, error) {
		err := c.is(id, place)
		switch {
		case err != nil, slices.Contains(c.Secrets, fingerprint):
			return false, err
		case slices.Contains(c.Removed, fingerprint):
			return false, invalid("the secret %s was removed; add a new one", fingerprint)
		}
		c.Secrets = append(c.Secrets, fingerprint)
		return true, nil
	})
}
