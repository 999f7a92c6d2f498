package s3store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

const (
	// probeName begins the name of the object that a probe writes. It stays: a store needs no right
	// to delete.
	probeName = "probe-"
	// In each of probeRounds rounds probeWriters write at once.
	probeRounds  = 5
	probeWriters = 8
	// probeSize is large enough for a part of a write to reach the server's process: servers read
	// some kilobytes before they process a request.
	probeSize = 32 << 10
	// meetingWait is how long a write waits for the others, since the server may refuse one before
	// it has a part of it; meetingPause is how long the server then has to process all of them.
	meetingWait  = 250 * time.Millisecond
	meetingPause = 50 * time.Millisecond
)

// meeting is the key of a function in a context, which a write calls after it has sent a part of
// its data. A server that checks the condition when a write begins, not when it ends, then accepts
// all that have met. Versity's gateway 1.6.0, whose window is a millisecond or two, otherwise
// passed half of the probes.
type meeting struct{}

// meet returns a context with which the writes of a round wait for each other.
func meet(ctx context.Context) context.Context {
	var here atomic.Int64
	all := make(chan struct{})
	return context.WithValue(ctx, meeting{}, func() {
		if here.Add(1) == probeWriters {
			close(all)
		}
		select {
		case <-all:
			time.Sleep(meetingPause)
		case <-ctx.Done():
		case <-time.After(meetingWait):
		}
	})
}

// probe returns an error unless the server, in several rounds, accepts exactly one of several
// concurrent writes that require the same version, and refuses writes that require an old version
// or none. A server that ignores conditions, or that checks them before it writes without excluding
// others in between, would grant leases twice. Many servers speak the protocol of S3, and some do
// that.
func (s *objects) probe(ctx context.Context) error {
	name := probeName + lease.NewNonce()
	old, version := "", ""
	for range probeRounds {
		acknowledged, err := s.writeAtOnce(ctx, name, version)
		if err != nil {
			return err
		}
		o, err := s.Read(ctx, name)
		if err != nil {
			return err
		}
		if acknowledged != 1 || o.Version == version {
			return unfit("of %d writes at once, each on condition of the version %q, it "+
				"acknowledged %d, and the object has the version %q", probeWriters, version,
				acknowledged, o.Version)
		}
		old, version = version, o.Version
	}
	for _, condition := range []string{"", old} {
		switch err := s.try(ctx, name, condition); {
		case err == nil:
			return unfit("it replaced an object on condition of the old version %q", condition)
		case !errors.Is(err, driver.ErrChanged):
			return err
		}
	}
	return nil
}

// writeAtOnce sends several concurrent writes that require the same version, and returns how many
// the server acknowledged. It fails if more than half go unanswered; the rest would prove little.
func (s *objects) writeAtOnce(ctx context.Context, name, version string) (acknowledged int,
	err error) {
	var errs [probeWriters]error
	var all sync.WaitGroup
	together := meet(ctx)
	for i := range errs {
		all.Go(func() { errs[i] = s.try(together, name, version) })
	}
	all.Wait()
	unanswered := 0
	for _, e := range errs {
		if e == nil {
			acknowledged++
		} else if !errors.Is(e, driver.ErrChanged) {
			unanswered, err = unanswered+1, e
		}
	}
	if acknowledged > 1 || acknowledged == 1 && unanswered <= probeWriters/2 {
		err = nil
	}
	return acknowledged, err
}

// try sends a write until the server is not busy: some accept one of an object each second.
func (s *objects) try(ctx context.Context, name, version string) error {
	for {
		data := lease.NewNonce() + strings.Repeat("\n", probeSize) // different for each write
		_, err := s.Write(ctx, name, []byte(data), version, "")
		busy, ok := errors.AsType[*driver.TryAgain](err)
		if !ok || sleep(ctx, max(busy.After, time.Second)) != nil {
			return err
		}
	}
}

func unfit(format string, args ...any) error {
	return fmt.Errorf("%w: %s: this server does not honour conditional writes, so it would grant "+
		"leases twice; use another one, or a newer version",
		lease.ErrMisconfigured, fmt.Sprintf(format, args...))
}
