package calls

import (
	"context"
	"errors"
	"testing"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Original is an object as a client has read it before the store was copied or restored.
type Original struct {
	driver.Object
	// Ignores is set for a server that does not compare places when it writes.
	Ignores bool
}

// Prepared returns the object "config" of a server, after a place was drawn if there was none.
func Prepared(ctx context.Context, o driver.Objects) (driver.Object, error) {
	found, err := o.Read(ctx, "config")
	if p, ok := o.(interface{ Prepare(context.Context) error }); ok && err == nil &&
		found.Place == "" {
		if err = p.Prepare(ctx); err == nil {
			found, err = o.Read(ctx, "config")
		}
	}
	if err == nil && found.Place == "" {
		err = errors.New("the place is unknown")
	}
	return found, err
}

// Write writes an object at the present place.
func Write(ctx context.Context, o driver.Objects, name, data, version string) (driver.Object,
	error) {
	here, err := Prepared(ctx, o)
	if err != nil {
		return here, err
	}
	return o.Write(ctx, name, []byte(data), version, here.Place)
}

// NewPlace writes the object "config", and returns it as read.
func NewPlace(tb testing.TB, o driver.Objects) Original {
	tb.Helper()
	found, err := Prepared(tb.Context(), o)
	if err == nil {
		_, err = Write(tb.Context(), o, "config", lease.NewNonce(), found.Version)
	}
	if err == nil {
		found, err = o.Read(tb.Context(), "config")
	}
	if err != nil {
		tb.Fatal(err)
	}
	return Original{Object: found}
}

// Refuses checks that a copy of the original has another place, also after one was drawn, and that
// nothing is written there at the original's place.
func (a Original) Refuses(tb testing.TB, copied driver.Objects) {
	tb.Helper()
	for range 2 {
		found, err := copied.Read(tb.Context(), "config")
		if err != nil || found.Place == a.Place || found.Version == "" {
			tb.Fatalf("the copy has the place %q and the version %q, %v; the original's place is "+
				"%q", found.Place, found.Version, err, a.Place)
		}
		if !a.Ignores {
			_, err = copied.Write(tb.Context(), "config", []byte("late"), found.Version, a.Place)
			if now, _ := copied.Read(tb.Context(), "config"); !errors.Is(err, lease.ErrMoved) ||
				now.Version != found.Version {
				tb.Errorf("a write at the original's place: %v, want %v", err, lease.ErrMoved)
			}
		}
		if _, err := Prepared(tb.Context(), copied); err != nil {
			tb.Fatal(err)
		}
	}
}
