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
	// Reads and Writes count the requests.
	Reads, Writes int

	mu      sync.Mutex
	writing func(name string)
}

// OnWrite sets what is called before each write of an object; nil ends it.
func (s *Memory) OnWrite(writing func(name string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = writing
}

// Read implements [driver.Objects].
func (s *Memory) Read(ctx context.Context, name string) (driver.Object, error) {
	s.mu.Lock()
	s.Reads++
	s.mu.Unlock()
	return s.Objects.Read(ctx, name)
}

// Write implements [driver.Objects].
func (s *Memory) Write(ctx context.Context, name string, data []byte,
	version, place string) (driver.Object, error) {
	s.mu.Lock()
	s.Writes++
	writing := s.writing
	s.mu.Unlock()
	if writing != nil {
		writing(name)
	}
	return s.Objects.Write(ctx, name, data, version, place)
}
