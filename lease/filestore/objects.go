package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/traceflake/traceflake/internal/await"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// errLocked is returned if other processes held the directory's lock until the context was over.
var errLocked error = &lease.Error{
	Err: errors.New("the directory is locked by other processes, or its disk does not answer"),
	Fix: "wait until the other process releases the lock; if it lasts, find the process with lsof",
}

const (
	fileMode = 0o600
	dirMode  = 0o700

	unfinished = ".new" // a suffix
)

// objects is a [driver.Objects] in a directory. The version of an object is its data, which never
// recurs.
type objects struct {
	path string
	turn chan struct{} // one call at a time in this process
	disk disk
}

// Prepare implements [driver.Objects]. It creates the directory.
func (o *objects) Prepare(ctx context.Context) error {
	_, err := locked(ctx, o, o.create, func(*directory) (none struct{}, err error) { return })
	return err
}

// Read implements [driver.Objects]. It syncs the directory, since a process may have ended between
// renaming a file and syncing. The processes of one host have one clock, so the store has none.
func (o *objects) Read(ctx context.Context, name string) (driver.Object, error) {
	found, err := locked(ctx, o, o.open, func(d *directory) (driver.Object, error) {
		found, err := d.object(name)
		found.Place = d.place
		return found, errors.Join(err, d.disk.syncName(d.root, name))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return driver.Object{}, nil
	}
	return found, err
}

// Write implements [driver.Objects].
func (o *objects) Write(ctx context.Context, name string, data []byte,
	version, place string) (driver.Object, error) {
	written, err := locked(ctx, o, o.open, func(d *directory) (driver.Object, error) {
		now, err := d.object(name)
		switch {
		case err != nil:
			return now, err
		case d.place != place:
			return now, lease.ErrMoved
		case now.Version != version:
			return now, driver.ErrChanged
		}
		return driver.Object{Version: string(data)}, d.replace(name, data)
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = lease.ErrMoved // only Prepare creates the directory
	}
	return written, err
}

// locked calls do with the directory that a function opens, locked. It returns when ctx is over,
// even if the disk does not answer: then do continues, and later calls of this process wait for it.
func locked[T any](ctx context.Context, o *objects, open func() (*os.Root, error),
	do func(*directory) (T, error)) (none T, err error) {
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	result, err := await.Call(ctx, 0, func(ctx context.Context) (none T, err error) {
		select {
		case o.turn <- struct{}{}:
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
		defer func() { <-o.turn }()
		d, err := o.lock(ctx, open)
		if err != nil {
			return none, err
		}
		result, err := do(d)
		return result, errors.Join(err, d.close())
	})
	if over := context.Cause(ctx); over != nil && errors.Is(err, over) {
		return none, fmt.Errorf("%w: %w", ctx.Err(), errLocked)
	}
	return result, explain(err)
}

// explain adds to an error what an operator can do.
func explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errReadOnly):
		return &lease.Error{Err: fmt.Errorf("%w: %w", lease.ErrMisconfigured, err),
			Fix: "let the user of the process own the directory, and be able to write there, on " +
				"a file system that is not read-only"}
	case errors.Is(err, errFull):
		return &lease.Error{Err: driver.Mean(lease.ErrDiskFull, err),
			Fix: "free some space on the disk; processes recover by themselves"}
	}
	return driver.Diagnose(err)
}

// object returns an object, without a version if it does not exist.
func (d *directory) object(name string) (driver.Object, error) {
	data, err := d.root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return driver.Object{}, nil
	}
	if err == nil && len(data) == 0 { // which as a version says that there is no object
		err = fmt.Errorf("%w: the file %s is empty", driver.ErrEdited, name)
	}
	return driver.Object{Data: data, Version: string(data)}, err
}

// replace replaces a file, so that after a crash it contains either the old or the new data.
func (d *directory) replace(name string, data []byte) error {
	if err := d.write(name+unfinished, data); err != nil {
		return err
	}
	if err := d.root.Rename(name+unfinished, name); err != nil {
		return err
	}
	return d.disk.syncName(d.root, name)
}
