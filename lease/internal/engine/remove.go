package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// maxRemoved bounds the removed secrets that a store remembers: a process that may still have a
// lease with an older one has run without a renewal since.
const maxRemoved = 16

// RemoveSecret implements [stores.Store]. First the description changes: from then on no block is
// acquired with the secret. Then each page changes, since a renewal does not read the description.
func (s *Store) RemoveSecret(ctx context.Context, id, fingerprint string) (err error) {
	defer s.failed(ctx, &err, "remove a secret")
	var about *config
	err = s.updateConfig(ctx, func(c *config, place string) (bool, error) {
		about = c
		i := slices.Index(c.Secrets, fingerprint)
		err := c.is(id, place)
		switch {
		case err != nil, slices.Contains(c.Removed, fingerprint): // by an earlier call
			return false, err
		case i < 0:
			return false, fmt.Errorf("%w: the secret %q is not registered, want one of %q",
				lease.ErrInvalidRequest, fingerprint, c.Secrets)
		case len(c.Secrets) == 1:
			return false, fmt.Errorf("%w: the store has no other secret: add one first",
				lease.ErrInvalidRequest)
		}
		c.Secrets = slices.Delete(c.Secrets, i, i+1)
		c.Removed = removed(c.Removed, fingerprint)
		return true, nil
	})
	if err != nil {
		return err
	}
	return s.writePages(ctx, about, func(ctx context.Context, c *config, number int) error {
		return s.update(ctx, pageName(number), func(o driver.Object, _ bool) ([]byte, error) {
			p, err := parse(c, number, o)
			if err != nil || slices.Contains(p.Removed, fingerprint) {
				return nil, err
			}
			p.Removed = removed(p.Removed, fingerprint)
			return p.bytes("")
		})
	})
}

func removed(all []string, fingerprint string) []string {
	all = append(all, fingerprint)
	return all[max(0, len(all)-maxRemoved):]
}

// checkSecret returns an error for a request with a secret that was removed.
func checkSecret(removed []string, r lease.Request) error {
	if slices.Contains(removed, r.Secret) {
		return fmt.Errorf("%w: the secret %s was removed", lease.ErrWrongSecret, r.Secret)
	}
	return nil
}
