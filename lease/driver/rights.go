package driver

import (
	"context"
	"errors"
	"fmt"
)

// ErrRightsUnknown is returned by [Store.CheckRights] if only a write would show whether the client
// may write.
var ErrRightsUnknown = errors.New("whether this client may write cannot be known without writing")

// Rights is implemented by [Objects] that can tell without writing whether a process may read and
// replace them.
type Rights interface {
	// CheckRights returns an error that wraps lease.ErrMisconfigured if a right is missing, and
	// [ErrRightsUnknown] if the server does not say.
	CheckRights(ctx context.Context) error
}

// CheckRights implements [Store].
func (s *store) CheckRights(ctx context.Context) error {
	r, ok := s.objects.Objects.(Rights)
	if !ok {
		return ErrRightsUnknown
	}
	if err := r.CheckRights(ctx); err != nil {
		return fmt.Errorf("%s: rights: %w", s.layout.Name, err)
	}
	return nil
}
