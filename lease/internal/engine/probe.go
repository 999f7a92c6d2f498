package engine

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
	// probeName is the object that a probe writes. It stays: a store needs no right to delete.
	probeName = "probe"
	// In each of probeRounds rounds probeWriters write at once.
	probeRounds  = 5
	probeWriters = 8
	// probeSize is large enough for [driver.PartSent]: servers read some kilobytes before they
	// process a request.
	probeSize = 32 << 10
	// meetingWait is how long a write waits for the others, since the server may refuse one before
	// it reaches [driver.PartSent]; meetingPause is how long the server then has to process all of
	// them.
	meetingWait  = 250 * time.Millisecond
	meetingPause = 50 * time.Millisecond
)

// meeting returns a context with which the writes of a round wait for each other in
// [driver.PartSent].
func meeting(ctx context.Context) context.Context {
	var here atomic.Int64
	all := make(chan struct{})
	return driver.WithPartSent(ctx, func() {
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
// others in between, would grant leases twice. A concurrent probe of the same object can only cause
// more rounds.
func probe(ctx context.Context, server driver.Objects, place string) error {
	before, err := server.Read(ctx, probeName)
	old := ""
	for rounds, tries := 0, 1; err == nil && rounds < probeRounds; tries++ {
		old = before.Version
		acknowledged, failed := writeAtOnce(ctx, server, old, place)
		if failed != nil {
			return failed
		}
		before, err = server.Read(ctx, probeName)
		unchanged := err == nil && before.Version == old
		if acknowledged == 1 && !unchanged {
			rounds++
		} else if acknowledged > 0 || unchanged && tries >= 2*probeRounds {
			return unfit("of %d writes at once, each on condition of the version %.64q, it "+
				"acknowledged %d, and the object has the version %.64q", probeWriters, old,
				acknowledged, before.Version)
		}
	}
	for _, condition := range []string{"", old} {
		if err != nil {
			return err
		}
		if _, err = server.Write(ctx, probeName, probeData(), condition, place); err == nil {
			return unfit("it replaced an object on condition of the old version %.64q", condition)
		} else if errors.Is(err, driver.ErrChanged) {
			err = nil
		}
	}
	return err
}

// writeAtOnce sends several concurrent writes that require the same version, and returns how many
// the server acknowledged. It fails if more than half go unanswered; the rest would prove little.
func writeAtOnce(ctx context.Context, server driver.Objects,
	version, place string) (acknowledged int, err error) {
	var errs [probeWriters]error
	var all sync.WaitGroup
	ctx = meeting(ctx)
	for i := range errs {
		all.Go(func() { _, errs[i] = server.Write(ctx, probeName, probeData(), version, place) })
	}
	all.Wait()
	unanswered := 0
	for _, e := range errs {
		switch {
		case e == nil:
			acknowledged++
		case errors.Is(e, errAltered), errors.Is(e, lease.ErrMisconfigured):
			return 0, e
		case !errors.Is(e, driver.ErrChanged):
			unanswered, err = unanswered+1, e
		}
	}
	if acknowledged > 1 || unanswered <= probeWriters/2 {
		err = nil
	}
	return acknowledged, err
}

// probeData returns data that is different for each write.
func probeData() []byte {
	const text = `{"purpose":"to find out whether this server honours conditional writes",` +
		`"nonce":"%s","padding":"%s"}` + "\n"
	return fmt.Appendf(nil, text, lease.NewNonce(), strings.Repeat("x", probeSize))
}

func unfit(format string, args ...any) error {
	return fmt.Errorf("%w: %s: this server does not honour conditional writes, so it would grant "+
		"leases twice; use another one, or a newer version",
		lease.ErrMisconfigured, fmt.Sprintf(format, args...))
}
