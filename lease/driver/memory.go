package driver

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// Memory is [Objects] within one process, for tests: it forgets everything when the process ends.
// The version of an object is its data. The zero Memory is empty. It is safe for concurrent use.
type Memory struct {
	// Clock is the server's. If it is nil, the server has no clock. Set it before the first use.
	Clock func() time.Time

	mu      sync.Mutex
	objects map[string]string
}

var _ Objects = (*Memory)(nil)

// NewMemory returns the store that d describes, in memory, with leases of any TTL. If it has no
// secrets, a Keeper may use any. Fields that d leaves empty are set as by [NewDescription]. It
// panics if d is invalid.
func NewMemory(d lease.Description) Store {
	d.LongestTTL = cmp.Or(d.LongestTTL, lease.MaxTTL)
	d, err := NewDescription(d)
	if err != nil {
		panic(err)
	}
	s, err := New(new(Memory), Layout{Name: "lease: memory", BlocksPerPage: 64})
	if err == nil {
		err = s.Create(context.Background(), d)
	}
	if err != nil {
		panic(err)
	}
	return s
}

// Read implements [Objects].
func (m *Memory) Read(ctx context.Context, name string) (Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.object(name)
	if m.Clock != nil {
		o.Time = m.Clock().Truncate(time.Second)
	}
	return o, ctx.Err()
}

func (m *Memory) object(name string) Object {
	data := m.objects[name]
	return Object{Data: []byte(data), Version: data}
}

// Write implements [Objects].
func (m *Memory) Write(ctx context.Context, name string, data []byte,
	version string) (Object, error) {
	if err := ctx.Err(); err != nil {
		return Object{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects[name] != version {
		return Object{}, ErrChanged
	}
	if m.objects == nil {
		m.objects = map[string]string{}
	}
	m.objects[name] = string(data)
	return Object{Version: string(data)}, nil
}

// List implements [Objects].
func (m *Memory) List(ctx context.Context) (map[string]Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]Object, len(m.objects))
	for name := range m.objects {
		all[name] = m.object(name)
	}
	return all, ctx.Err()
}

// Delete deletes every object whose name begins with prefix, as no client does.
func (m *Memory) Delete(prefix string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.objects, func(name, _ string) bool { return strings.HasPrefix(name, prefix) })
}
