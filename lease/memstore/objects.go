package memstore

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Objects are [driver.Objects] within one process, for tests. The version of an object is its data.
// The zero Objects are empty. It is safe for concurrent use.
type Objects struct {
	// Clock is the server's. If it is nil, the server has no clock. Set it before the first use.
	Clock func() time.Time

	mu      sync.Mutex
	objects map[string]string
	place   string
}

var _ driver.Objects = (*Objects)(nil)

// Read implements [driver.Objects].
func (m *Objects) Read(ctx context.Context, name string) (driver.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data := m.objects[name]
	o := driver.Object{Data: []byte(data), Version: data, Place: m.here()}
	if m.Clock != nil {
		o.Time = m.Clock().Truncate(time.Second)
	}
	return o, ctx.Err()
}

// here returns the place, which the first request draws.
func (m *Objects) here() string {
	if m.place == "" {
		m.place = rand.Text()
	}
	return m.place
}

// Move gives the objects another place, as a failover does.
func (m *Objects) Move() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.place = ""
}

// Write implements [driver.Objects].
func (m *Objects) Write(ctx context.Context, name string, data []byte,
	version, place string) (driver.Object, error) {
	if err := ctx.Err(); err != nil {
		return driver.Object{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.here() != place:
		return driver.Object{}, lease.ErrMoved
	case m.objects[name] != version:
		return driver.Object{}, driver.ErrChanged
	}
	if m.objects == nil {
		m.objects = map[string]string{}
	}
	m.objects[name] = string(data)
	return driver.Object{Version: string(data)}, nil
}

// Data returns the data of all objects, a backup for Set.
func (m *Objects) Data() map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string][]byte, len(m.objects))
	for name, data := range m.objects {
		all[name] = []byte(data)
	}
	return all
}

// Set sets the data of objects, as an operator does who restores a backup. An object without data
// does not exist.
func (m *Objects) Set(objects map[string][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, data := range objects {
		if m.objects == nil {
			m.objects = map[string]string{}
		}
		m.objects[name] = string(data)
	}
}
