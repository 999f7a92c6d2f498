// Package pages keeps blocks of leases on pages: small objects on a server that
// writes one only if nobody else has written it since it was read. Stores on
// such servers differ only in their [Server].
package pages

import (
	"context"
	"errors"
	"time"
)

// ErrChanged is returned by [Server.Write] if the object no longer has the
// given version. Nothing was written.
var ErrChanged = errors.New("the object has changed")

// Server holds objects. It is linearizable and durable: an acknowledged write
// is never forgotten, and every call sees all writes acknowledged before it
// began. It is safe for concurrent use.
//
// It tries each request once, or waits and tries again where a server says that
// it did nothing (throttling). It never repeats a write whose outcome is
// unknown.
type Server interface {
	// Read returns an object. The object of a name that was never written has
	// the version "" and is no error.
	Read(ctx context.Context, name string) (Object, error)

	// Write replaces the data of an object if it still has this version, or
	// creates it if the version is "" and there is no such object. It returns
	// the object as written, without data. After any error other than
	// ErrChanged and lease.ErrMisconfigured it is unknown whether it was written.
	Write(ctx context.Context, name string, data []byte, version string) (Object, error)

	// Versions returns the version of every object, by name.
	Versions(ctx context.Context) (map[string]string, error)
}

// Object is what a [Server] returns of an object.
type Object struct {
	Data []byte
	// Version changes with every write. It says nothing else. It is "" if the
	// object does not exist.
	Version string
	// Time is the server's, at the response, in whole seconds.
	Time time.Time
}
