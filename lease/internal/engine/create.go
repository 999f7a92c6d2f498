package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	if err := s.begin(ctx, d); err != nil {
		return err
	}
	return s.finish(ctx, d.ID, creating, s.createPage)
}

// begin creates the object that describes the store, unless an earlier call has.
func (s *Store) begin(ctx context.Context, d lease.Description) error {
	stray, err := s.stray(ctx) // first: no page is written before the description
	if err != nil {
		return err
	}
	o, err := s.objects.Read(ctx, configName)
	switch {
	case err != nil:
		return err
	case o.Version != "":
		return nil
	case stray != "":
		return fmt.Errorf("%w: %w: its pages are here, such as %s, but the object %q is gone",
			lease.ErrExists, driver.ErrEdited, stray, configName)
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

// finish records the place of a store that is in a phase, writes every page, and marks the store as
// complete.
func (s *Store) finish(ctx context.Context, id string, during phase,
	write func(ctx context.Context, c *config, number int) error) error {
	var placed bool // by the last step: another one follows
	step := func(c *config, place string) (bool, error) {
		here := c.here(place)
		placed = false
		switch {
		case c.ID != id && during == creating:
			return false, fmt.Errorf("%w, with the ID %s, created at %s", lease.ErrExists, c.ID,
				text(c.Created))
		case c.ID != id:
			return false, replaced(c.ID, id)
		case c.Phase == complete:
			return false, errors.Join(here, s.whole(ctx, c))
		case c.Phase != during:
			return false, c.ready()
		case here != nil:
			return false, &lease.Error{Err: here,
				Fix: "delete this incomplete copy, and create a store"}
		case c.Place == "" && place != "": // first: nobody completes a copy
			c.Place, placed = place, true
			return true, nil
		}
		c.Phase = complete
		return true, s.writePages(ctx, c, write)
	}
	err := s.updateConfig(ctx, step)
	for placed && err == nil {
		err = s.updateConfig(ctx, step)
	}
	if during == creating && errors.Is(err, lease.ErrNoStore) {
		err = fmt.Errorf("%w: the server acknowledged the object %q, which is not there",
			lease.ErrMisconfigured, configName)
	}
	return err
}

func (s *Store) writePages(ctx context.Context, c *config,
	write func(ctx context.Context, c *config, number int) error) error {
	_, err := each(ctx, c.numbers(),
		func(ctx context.Context, number int) (none struct{}, _ error) {
			return none, write(ctx, c, number)
		})
	return err
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
			return false, fmt.Errorf("%w: the secret %s was removed; add a new one",
				lease.ErrInvalidRequest, fingerprint)
		}
		c.Secrets = append(c.Secrets, fingerprint)
		return true, nil
	})
}
