package driver

import (
	"context"
	"errors"
	"fmt"
)

// ErrRightsUnknown is returned by [Store.CheckRights] if only a write would show whether the client
// may write. It is also for [Objects] that have a CheckRights of their own.
var ErrRightsUnknown = errors.New("whether this client may write cannot be known without writing")

// CheckRights implements [Store].
func (s *store) CheckRights(ctx context.Context) error {
	r, ok := s.objects.Objects.(interface{ CheckRights(context.Context) error })
	if !ok {
		return ErrRightsUnknown
	}
	if err := r.CheckRights(ctx); err != nil {
		return fmt.Errorf("%s: rights: %w", s.layout.Name, err)
	}
	return nil
}
