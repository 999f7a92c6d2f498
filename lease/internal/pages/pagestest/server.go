// Package pagestest has a server of pages for tests.
package pagestest

import (
	"context"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease/internal/pages"
)

// Server is a [pages.Server] in memory. As on S3 a version is a hash of the
// content. It is safe for concurrent use.
type Server struct {
	// Now is the server's clock. Without one it has none.
	Now func() time.Time
	// IgnoresVersions makes it a server that ignores what it does not know, as
	// some do with conditional requests.
	IgnoresVersions bool

	// Reads, Writes and Lists count the requests.
	Reads, Writes, Lists int

	mu      sync.Mutex
	objects map[string][]byte
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

// Delete deletes every object whose name begins with prefix, as no client does.
func (s *Server) Delete(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.objects, func(name string, _ []byte) bool { return strings.HasPrefix(name, prefix) })
}
