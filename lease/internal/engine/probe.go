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

// meeting returns a context whose writes wait for each other in [driver.PartSent].
func meeting(ctx context.Context, writers int64) context.Context {
	var here atomic.Int64
	all := make(chan struct{})
	return driver.WithPartSent(ctx, func() {
		if here.Add(1) == writers {
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
func probe(ctx context.Context, server driver.Objects) error {
	before, err := server.Read(ctx, probeName)
	old := ""
	for rounds, tries := 0, 1; err == nil && rounds < probeRounds; tries++ {
		old = before.Version
		tried := fmt.Sprintf(
			"%d writes at once, each on condition that the object has the version %.64q",
			probeWriters, old)
		if old == "" {
			tried = fmt.Sprintf("%d writes at once, each on condition that there is no such object",
				probeWriters)
		}
		acknowledged, failed := writeAtOnce(ctx, server, old)
		if failed != nil {
			return failed
		}
		before, err = server.Read(ctx, probeName)
		switch unchanged := err == nil && before.Version == old; {
		case acknowledged > 1:
			return unfit("of %s, it acknowledged %d; exactly one may be", tried, acknowledged)
		case acknowledged == 1 && unchanged:
			return unfit("of %s, it acknowledged one, and then the object still has this version",
				tried)
		case acknowledged == 1:
			rounds++
		case unchanged && tries >= 2*probeRounds:
			return unfit("it refused all of %s, which it has", tried)
		}
	}
	for _, condition := range []string{"", old} {
		if err != nil {
			return err
		}
		_, err = server.Write(ctx, probeName, probeData(), condition)
		switch {
		case err == nil && condition == "":
			return unfit("it replaced an object on condition that there is no such object")
		case err == nil:
			return unfit("it replaced an object on condition that it has the old version %.64q",
				condition)
		case errors.Is(err, driver.ErrChanged):
			err = nil
		}
	}
	return err
}

// writeAtOnce sends several concurrent writes that require the same version, and returns how many
// the server acknowledged. It fails if more than half go unanswered; the rest would prove little.
func writeAtOnce(ctx context.Context, server driver.Objects,
	version string) (acknowledged int, err error) {
	var errs [probeWriters]error
	var all sync.WaitGroup
	ctx = meeting(ctx, probeWriters)
	for i := range errs {
		all.Go(func() { _, errs[i] = server.Write(ctx, probeName, probeData(), version) })
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
