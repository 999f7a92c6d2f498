package driver

import (
	"context"
	"errors"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// Errors of [Objects], in addition to those of package lease.
var (
	// ErrChanged is returned by [Objects.Write] if the object no longer has the given version.
	// Nothing was written.
	ErrChanged = errors.New("the object has changed")
	// ErrEdited is returned if an object is not what the engine wrote. Nothing was written.
	ErrEdited error = &lease.Error{
		Err: errors.New("the object was edited or damaged"),
		Fix: "begin a new history of the store, which replaces all pages: traceflake lease " +
			"rekey; if the object \"config\" is damaged, create another store",
	}
	// ErrRightsUnknown is returned by CheckRights if only a write would show whether the client may
	// write.
	ErrRightsUnknown = errors.New(
		"whether this client may write cannot be known without writing")
)

// Objects is implemented by each backend: it keeps objects of some kilobytes under names of
// lower-case letters, digits and "-". It is linearizable and durable: an acknowledged write is
// never forgotten, and every call sees all writes acknowledged before it began, by any client.
// Reads from a replica or a cache do not meet this. It is safe for concurrent use.
//
// Three methods are optional:
//
//   - Prepare(context.Context) error creates what the other methods need, such as a table, and
//     draws a place unless there is one. The creation of a store and the begin of a history call
//     it if a Read of "config" has no place. Several clients may call it at once. If some servers
//     ignore conditions, it tests this one first.
//   - CheckRights(context.Context) error returns nil if a process may lease and begin a history:
//     read and replace every object, "config" too, and Prepare. It writes nothing. It returns
//     [ErrRightsUnknown] if it cannot tell, and lease.ErrMisconfigured.
//   - Close() error. The store's Close cancels the contexts of all calls, waits until they have
//     returned, and then calls it once.
//
// Each method obeys its context, also while a request is in flight: it returns soon after the
// context is over, with an error that wraps the context's. By default many clients check it only
// before a request. A context may have no deadline: set a time limit for connecting.
//
// It sends each request once. If the server says that it did nothing (throttling), the error wraps
// [*TryAgain], and the store repeats the request. A write whose outcome is unknown is never
// repeated. Errors say what was being done, and contain no secret. They wrap
// lease.ErrMisconfigured if an operator must change something.
type Objects interface {
	// Read returns an object. The object of a name that was never written, or that was deleted, has
	// the version "" and is no error. An error is never taken for a missing object.
	Read(ctx context.Context, name string) (Object, error)

	// Write replaces the data of an object if it still has this version, or
	// creates it if the version is "" and there is no such object; the server compares and writes
	// in one step. It returns the new version and, if the server answers with it, the data that was
	// stored. The store returns an error if that is not what was sent, or if the version is the old
	// one. After any error other than ErrChanged, lease.ErrMoved and lease.ErrMisconfigured it is
	// unknown whether it was written.
	//
	// A server that knows its place when it writes compares it in the same step, and the error
	// wraps lease.ErrMoved if it is not the given one, or is unknown. Others ignore place. It is
	// never "".
	Write(ctx context.Context, name string, data []byte, version, place string) (Object, error)
}

// Object is a stored object. Its data belongs to the caller.
type Object struct {
	Data []byte
	// Version changes with every write. It has no other meaning, and may be the data itself or a
	// hash of it, since data never recurs. It is "" if the object does not exist.
	Version string
	// Time is the server's time when it responded, or somewhat earlier, in whole seconds, or zero
	// if the server has no clock. Only that of a Read counts.
	Time time.Time
	// Place identifies where the objects are. A place is what a copy lacks: it is drawn by the
	// server, or by the backend where the server cannot copy it. It changes with every start of
	// what could have been set back meanwhile, such as a standby that is promoted or a restored
	// disk, and may change with others. A place that is unknown is "": it equals nothing,
	// also no other "". A Read of "config" has the place; one of another object has the same or
	// none. If the client may not find out the place, Read returns an error instead.
	Place string
}

// Layout configures how a package stores its pages.
type Layout struct {
	// Name is the package's name, for errors.
	Name string
	// BlocksPerPage is the number of blocks on a page of a new store, from 1 to 131072.
	BlocksPerPage uint32
}
