package engine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// A history of a store is known by its ID, which is in the description and on every page. A new one
// begins in three steps, each of which can be repeated:
//
//  1. The description gets the new ID, the fingerprint of the new secret and the present place, and
//     is marked: nobody acquires a block meanwhile.
//  2. Each page is replaced by an empty one with the new ID. From then on no request of the earlier
//     history changes it: each compares the ID in the conditional write of the page.
//  3. The mark is removed.
//
// Whatever the pages had before is not used: a backup may have forgotten any of it. A store whose
// creation or replacement was interrupted is replaced like any other: it may have been restored to
// that moment, and its secret may have been in use since.

// Replace implements [stores.Store].
func (s *Store) Replace(ctx context.Context, old, id, fingerprint string) (err error) {
	defer s.failed(ctx, &err, "replace the secret")
	err = cmp.Or(checkHex("ID", old, idLen), checkHex("ID", id, idLen),
		checkFingerprint(fingerprint))
	if err == nil {
		err = s.beginHistory(ctx, old, id, fingerprint)
	}
	if err != nil {
		return err
	}
	return s.finish(ctx, id, replacing, s.replacePage)
}

// beginHistory gives the store with the ID old another one, unless it has it already.
func (s *Store) beginHistory(ctx context.Context, old, id, fingerprint string) error {
	return s.updateConfig(ctx, func(c *config, place string) (bool, error) {
		switch {
		case c.ID == id:
			return false, c.here(place)
		case c.Replaced == old:
			return false, &lease.Error{
				Err: fmt.Errorf("another operator has begun to replace its secret, or has done "+
					"so: %w", same(c.ID, old)),
				Fix: "complete that command where it was run, and use its secret file; only if " +
					"the file is lost, or the store was restored again, replace the present ID",
			}
		case c.ID != old:
			return false, same(c.ID, old)
		}
		c.ID, c.Replaced, c.Secrets, c.Removed = id, old, []string{fingerprint}, nil
		c.Phase, c.Place = replacing, place
		return true, nil
	})
}

// replacePage replaces a page of an earlier history, whatever it contains, unless that was done.
func (s *Store) replacePage(ctx context.Context, c *config, number int) error {
	name := pageName(number)
	return s.update(ctx, name, func(o driver.Object, _ bool) ([]byte, error) {
		var h pageHeader
		if _, err := unseal(name, o.Data, &h); err == nil && h.Store == c.ID {
			return nil, nil
		}
		// The description of a later history was written before its pages. So if the page that was
		// just read belongs to one, this finds out.
		now, err := s.objects.Read(ctx, configName)
		if err != nil {
			return nil, err
		}
		later, err := parseConfig(now)
		if err := cmp.Or(err, same(later.ID, c.ID)); err != nil {
			return nil, err
		}
		return newPage(c, number).bytes("")
	})
}
