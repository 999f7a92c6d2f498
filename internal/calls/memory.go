package calls

import (
	"context"
	"errors"
	"sync"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
)

// Memory is [memstore.Objects] that counts requests, and may ignore conditions. It is safe for
// concurrent use.
type Memory struct {
	memstore.Objects
	// Accepts, if not nil, runs after the version check, without the lock, and reports whether the
	// write is stored. A server that always accepts ignores conditions, as some do.
	Accepts func(name string, unchanged bool) bool

	// Reads, Writes and Lists count the requests.
	Reads, Writes, Lists int

	mu sync.Mutex
}

func (s *Memory) count(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

// Read implements [driver.Objects].
func (s *Memory) Read(ctx context.Context, name string) (driver.Object, error) {
	s.count(&s.Reads)
	return s.Objects.Read(ctx, name)
}

// Write implements [driver.Objects].
func (s *Memory) Write(ctx context.Context, name string, data []byte,
	version, place string) (driver.Object, error) {
	s.count(&s.Writes)
	if s.Accepts == nil {
		return s.Objects.Write(ctx, name, data, version, place)
	}
	o, err := s.Objects.Read(ctx, name)
	if err == nil && !s.Accepts(name, o.Version == version) {
		err = driver.ErrChanged
	}
	for err == nil {
		if o, err = s.Objects.Read(ctx, name); err == nil {
			if o, err = s.Objects.Write(ctx, name, data, o.Version, o.Place); err == nil {
				return o, nil
			}
		}
		if errors.Is(err, driver.ErrChanged) {
			err = nil
		}
	}
	return driver.Object{}, err
}

// List implements [driver.Objects].
func (s *Memory) List(ctx context.Context) (map[string]driver.Object, error) {
	s.count(&s.Lists)
	return s.Objects.List(ctx)
}
