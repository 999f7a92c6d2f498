package driver

import (
	"context"
	"errors"
)

// ErrRightsUnknown is returned by [Store.CheckRights] if only a write would show whether the client
// may write. It is also for [Objects] that have a CheckRights of their own.
var ErrRightsUnknown = errors.New("whether this client may write cannot be known without writing")

// CheckRights implements [Store].
func (s *store) CheckRights(ctx context.Context) (err error) {
	defer s.failed(ctx, &err, "check rights")
	_, err = send(ctx, s.objects, func(ctx context.Context) (none struct{}, err error) {
		client, ok := s.objects.Objects.(interface{ CheckRights(context.Context) error })
		if !ok {
			return none, ErrRightsUnknown
		}
		return none, client.CheckRights(ctx)
	})
	return err
}
