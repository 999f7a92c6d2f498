package engine

import (
	"context"

	"github.com/traceflake/traceflake/lease/driver"
)

// CheckRights implements [stores.Store].
func (s *Store) CheckRights(ctx context.Context) (err error) {
	defer s.failed(ctx, &err, "check rights")
	_, err = send(ctx, s.objects, func(ctx context.Context) (none struct{}, err error) {
		client, ok := s.objects.Objects.(interface{ CheckRights(context.Context) error })
		if !ok {
			return none, driver.ErrRightsUnknown
		}
		return none, client.CheckRights(ctx)
	})
	return err
}
