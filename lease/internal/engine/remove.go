package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/traceflake/traceflake/lease"
)

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
			return false, invalid("the secret %q is not registered, want one of %q", fingerprint,
				c.Secrets)
		case len(c.Secrets) == 1:
			return false, invalid("the store has no other secret: add one first")
		}
		c.Secrets = slices.Delete(c.Secrets, i, i+1)
		c.Removed = latest(c.Removed, fingerprint)
		return true, nil
	})
	if err != nil {
		return err
	}
	return s.writePages(ctx, about, func(ctx context.Context, c *config, number int) error {
		return s.changePage(ctx, c, number, lease.NewNonce(), func(p *page) (bool, error) {
			if slices.Contains(p.Removed, fingerprint) {
				return false, nil
			}
			p.Removed = latest(p.Removed, fingerprint)
			return true, nil
		})
	})
}

// checkSecret returns an error for a request with a secret that was removed.
func checkSecret(removed []string, r lease.Request) error {
	if slices.Contains(removed, r.Secret) {
		return fmt.Errorf("%w: the secret %s was removed", lease.ErrWrongSecret, r.Secret)
	}
	return nil
}
