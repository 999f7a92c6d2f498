// Package pagestest has a server of pages for tests.
package pagestest

import (
	"context"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"github.com/traceflake/traceflake/randflake/lease/internal/pages"
)

// Server is a [pages.Server] in memory. As on S3 a version is a hash of the
// content. It is safe for concurrent use.
type Server struct {
	// Now is the server's clock. Without one it has none.
	Now func() time.Time
	// IgnoresVersions makes it a server that ignores what it does not know, as
	// some do with conditional requests.
	IgnoresVersions bool

	mu                   sync.Mutex
	objects              map[string][]byte
	Reads, Writes, Lists int
}

var _ pages.Server = (*Server)(nil)

// Read implements [pages.Server].
func (s *Server) Read(ctx context.Context, name string) (pages.Object, error) {
	if err := ctx.Err(); err != nil {
		return pages.Object{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Reads++
	data := s.objects[name]
	return pages.Object{Data: append([]byte(nil), data...), Version: version(data), Time: s.now()}, nil
}

// Write implements [pages.Server].
func (s *Server) Write(ctx context.Context, name string, data []byte, was string) (pages.Object, error) {
	if err := ctx.Err(); err != nil {
		return pages.Object{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Writes++
	if version(s.objects[name]) != was && !s.IgnoresVersions {
		return pages.Object{}, pages.ErrChanged
	}
	if s.objects == nil {
		s.objects = map[string][]byte{}
	}
	s.objects[name] = append([]byte(nil), data...)
	return pages.Object{Version: version(data), Time: s.now()}, nil
}

// Versions implements [pages.Server].
func (s *Server) Versions(ctx context.Context) (map[string]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Lists++
	all := map[string]string{}
	for name, data := range s.objects {
		all[name] = version(data)
	}
	return all, nil
}

func (s *Server) now() time.Time {
	if s.Now == nil {
		return time.Time{}
	}
	return s.Now().Truncate(time.Second)
}

func version(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	h := fnv.New64a()
	_, _ = h.Write(data) // never fails
	return strconv.FormatUint(h.Sum64(), 16)
}

// Clear deletes every object, as nobody may.
func (s *Server) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = nil
}
