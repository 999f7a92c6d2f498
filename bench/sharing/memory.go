package sharing

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unsafe"
)

// line is the size of a cache line in bytes.
const line = 64

// region is a piece of memory that holds a value.
type region struct {
	at, size uintptr
	typ      reflect.Type
}

// walk finds the memory reachable from a pointer. It is an error if some memory cannot be
// inspected, because writes there would go unnoticed.
type walk struct {
	seen map[region]bool
	err  error
}

// regions returns all memory reachable from the pointer p.
func regions(p any) ([]region, error) {
	w := walk{seen: make(map[region]bool)}
	w.value(reflect.ValueOf(p))
	var all []region
	for r := range w.seen {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b region) int {
		if a.at != b.at {
			return int(a.at) - int(b.at)
		}
		return int(b.size) - int(a.size)
	})
	// Parts of a larger region are watched with it.
	kept := all[:0]
	var end uintptr
	for _, r := range all {
		if r.at+r.size > end {
			kept, end = append(kept, r), r.at+r.size
		}
	}
	return kept, w.err
}

// memory adds n values of a type at an address, and everything reachable from them.
func (w *walk) memory(at unsafe.Pointer, t reflect.Type, n int) {
	r := region{uintptr(at), t.Size() * uintptr(n), t}
	if at == nil || r.size == 0 || w.seen[r] {
		return
	}
	w.seen[r] = true
	if !hasPointers(t) {
		return
	}
	for i := range n {
		w.value(reflect.NewAt(t, unsafe.Add(at, uintptr(i)*t.Size())).Elem())
	}
}

func (w *walk) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		w.memory(v.UnsafePointer(), v.Type().Elem(), 1)
	case reflect.Slice:
		if v.Cap() > 0 {
			w.memory(v.UnsafePointer(), v.Type().Elem(), v.Cap())
		}
	case reflect.Interface:
		if !v.IsNil() {
			w.boxed(v)
		}
	case reflect.Array:
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	case reflect.Struct:
		w.fields(v)
	case reflect.Map, reflect.Chan, reflect.UnsafePointer:
		if !v.IsZero() && w.err == nil {
			w.err = fmt.Errorf("cannot inspect a %s", v.Type())
		}
	}
	// Functions hold code and captured variables, which are reached otherwise or never written;
	// strings are never written.
}

// boxed follows the pointer in an interface. Any other value in an interface is never written.
func (w *walk) boxed(v reflect.Value) {
	if e := v.Elem(); e.Kind() == reflect.Pointer {
		w.value(e)
	}
}

// foreign reports whether values of a type are left out: timers and OpenTelemetry's metrics, which
// no call of a generator writes.
func foreign(t reflect.Type) bool {
	switch t.PkgPath() {
	case "time", "sync", "context", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/internal/global":
		return true
	}
	return false
}

func (w *walk) fields(v reflect.Value) {
	t := v.Type()
	if t.PkgPath() == "sync/atomic" && t.NumField() > 0 && t.Field(t.NumField()-1).Type.Kind() == reflect.UnsafePointer {
		// atomic.Pointer[T] begins with a [0]*T.
		w.memory(v.Field(t.NumField()-1).UnsafePointer(), t.Field(0).Type.Elem().Elem(), 1)
		return
	}
	if t == reflect.TypeFor[sync.Pool]() {
		w.pool(v)
		return
	}
	if foreign(t) {
		return
	}
	for i := range t.NumField() {
		w.value(v.Field(i))
	}
}

// pool follows the values that a sync.Pool keeps for each processor.
func (w *walk) pool(v reflect.Value) {
	for _, name := range []string{"local", "victim"} {
		at, n := v.FieldByName(name), v.FieldByName(name+"Size")
		if !at.IsValid() || !n.IsValid() || at.Kind() != reflect.UnsafePointer {
			w.err = fmt.Errorf("cannot inspect the %s of this version of Go", v.Type())
			return
		}
		w.memory(at.UnsafePointer(), reflect.TypeFor[poolLocal](), int(n.Uint()))
	}
}

// poolLocal and poolChain have the layout of the types of these names in sync, Go 1.26.
type poolLocal struct {
	private    any        //nolint:unused // followed by reflection
	head, tail *poolChain //nolint:unused // followed by reflection
	_          [128 - 4*unsafe.Sizeof(uintptr(0))]byte
}

type poolChain struct { //nolint:unused // followed by reflection
	headTail   uint64
	values     []any
	next, prev *poolChain
}

// hasPointers reports whether values of a type may contain pointers.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Interface, reflect.Map, reflect.Chan, reflect.UnsafePointer, reflect.Func, reflect.String:
		return true
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// picture is a copy of some memory.
type picture struct {
	regions []region
	words   [][]byte
}

func newPicture(regions []region) *picture {
	p := &picture{regions: regions}
	for _, r := range regions {
		p.words = append(p.words, make([]byte, r.size))
	}
	return p
}

func (r region) bytes() []byte {
	return unsafe.Slice((*byte)(pointer(r.at)), r.size)
}

// pointer returns a pointer to an address. The caller keeps the memory alive.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// take copies the memory.
func (p *picture) take() {
	for i, r := range p.regions {
		copy(p.words[i], r.bytes())
	}
}

// changed adds the lines that differ from the copy.
func (p *picture) changed(lines map[uintptr]bool) {
	for i, r := range p.regions {
		now := r.bytes()
		if string(now) == string(p.words[i]) {
			continue
		}
		for k := range now {
			if now[k] != p.words[i][k] {
				lines[(r.at+uintptr(k))/line] = true
			}
		}
	}
}
