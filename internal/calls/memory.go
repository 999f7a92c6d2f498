package calls

import (
	"context"
	"sync"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
)

// Memory is [memstore.Objects] that counts requests. It is safe for concurrent use.
type Memory struct {
	memstore.Objects
	// Writing, if not nil, is called before each write of an object.
	Writing func(name string)

	// Reads and Writes count the requests.
	Reads, Writes int

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
	if s.Writing != nil {
		s.Writing(name)
	}
	return s.Objects.Write(ctx, name, data, version, place)
}
