package leasetest

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease/driver"
)

// Server is [driver.Objects] in memory. The version of an object is its data. It
// is safe for concurrent use.
type Server struct {
	// Now is the server's clock. Without one it has none.
	Now func() time.Time
	// Place is that of all objects.
	Place string
	// Accepts, if not nil, decides whether a Write is made after it has compared the versions, without
	// excluding other writes. A server that always accepts ignores conditions, as some do.
	Accepts func(name string, unchanged bool) bool

	// Reads, Writes and Lists count the requests.
	Reads, Writes, Lists int

	mu      sync.Mutex
	objects map[string]string
}

var _ driver.Objects = (*Server)(nil)

// Read implements [driver.Objects].
func (s *Server) Read(ctx context.Context, name string) (driver.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Reads++
	o := s.object(name)
	o.Place = s.Place
	if s.Now != nil {
		o.Time = s.Now().Truncate(time.Second)
	}
	return o, ctx.Err()
}

func (s *Server) object(name string) driver.Object {
	data := s.objects[name]
	return driver.Object{Data: []byte(data), Version: data}
}

// Write implements [driver.Objects].
func (s *Server) Write(ctx context.Context, name string, data []byte, version string) (driver.Object, error) {
	if err := ctx.Err(); err != nil {
		return driver.Object{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Writes++
	ok := s.objects[name] == version
	if s.Accepts != nil {
		s.mu.Unlock()
		ok = s.Accepts(name, ok)
		s.mu.Lock()
	}
	if !ok {
		return s.object(name), driver.ErrChanged
	}
	if s.objects == nil {
		s.objects = map[string]string{}
	}
	s.objects[name] = string(data)
	return driver.Object{Version: string(data)}, nil
}

// List implements [driver.Objects].
func (s *Server) List(ctx context.Context) (map[string]driver.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Lists++
	all := map[string]driver.Object{}
	for name := range s.objects {
		all[name] = s.object(name)
	}
	return all, ctx.Err()
}

// Delete deletes every object whose name begins with prefix, as no client does.
func (s *Server) Delete(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.objects, func(name string, _ string) bool { return strings.HasPrefix(name, prefix) })
}
