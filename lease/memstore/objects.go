package memstore

import (
	"context"
	"crypto/rand"
	"maps"
	"strings"
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
	o := m.object(name)
	if m.Clock != nil {
		o.Time = m.Clock().Truncate(time.Second)
	}
	o.Place = m.here()
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

func (m *Objects) object(name string) driver.Object {
	data := m.objects[name]
	return driver.Object{Data: []byte(data), Version: data}
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

// Set sets the data of objects, as an operator does who restores a backup. Without data an object
// is deleted.
func (m *Objects) Set(objects map[string][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, data := range objects {
		if m.objects == nil {
			m.objects = map[string]string{}
		}
		m.objects[name] = string(data)
	}
	maps.DeleteFunc(m.objects, func(_, data string) bool { return data == "" })
}

// Delete deletes every object whose name begins with prefix, as no client does.
func (m *Objects) Delete(prefix string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.objects, func(name, _ string) bool { return strings.HasPrefix(name, prefix) })
}
