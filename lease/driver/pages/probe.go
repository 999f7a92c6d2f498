package pages

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/traceflake/traceflake/lease"
)

// Probe is when a [Store] tries out the conditional writes of its server. A
// server that ignores conditions, or that checks them before it writes without
// excluding others in between, would grant leases twice.
type Probe int

const (
	// ProbeNever trusts the server.
	ProbeNever Probe = iota
	// ProbeNewStore tries it before a store is created.
	ProbeNewStore
	// ProbeEachStart tries it before a process writes for the first time.
	ProbeEachStart
)

const (
	probePrefix = "probe-"
	// probeObjects is how many objects the probes of processes write: servers
	// may limit how often one object is written. The objects stay, because a
	// store needs no right to delete.
	probeObjects = 256
	// In each of probeRounds rounds probeWriters write at once. Versity's gateway
	// 1.6.0, whose window is a few milliseconds, grants about one round in two twice.
	probeRounds  = 5
	probeWriters = 8
	// probeSize is that of a page with many blocks.
	probeSize = 8 << 10
)

// probed is the state of a store's probe.
type probed struct {
	done atomic.Bool
	turn chan struct{} // has an element while a call probes
}

// trust probes the server before the first write, if each process does.
func (s *Store) trust(ctx context.Context) error {
	if s.layout.Probe != ProbeEachStart {
		return nil
	}
	return s.probe(ctx, fmt.Sprintf("%s%02x", probePrefix, rand.N(probeObjects)))
}

// trustNew probes the server before a store is created.
func (s *Store) trustNew(ctx context.Context) error {
	if s.layout.Probe != ProbeNewStore {
		return s.trust(ctx)
	}
	return s.probe(ctx, probePrefix+"00")
}

func (s *Store) probe(ctx context.Context, name string) error {
	if s.probed.done.Load() {
		return nil
	}
	select {
	case s.probed.turn <- struct{}{}:
		defer func() { <-s.probed.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.probed.done.Load() {
		return nil
	}
	if err := probe(ctx, s.server, name); err != nil {
		return fmt.Errorf("trying out the server with the object %s: %w", name, err)
	}
	s.probed.done.Store(true)
	return nil
}

// probe returns an error unless, of several writes at once that require the same
// version, the server takes exactly one, several times; refuses writes that
// require an old version or none; and lists the version that it reads. Probes of
// other processes on the same object can only make it try more often.
func probe(ctx context.Context, server Server, name string) error {
	now, err := server.Read(ctx, name)
	if err != nil {
		return err
	}
	before := now
	for decided, round := 0, 0; decided < probeRounds; round++ {
		before = now
		wins, err := writeAtOnce(ctx, server, name, now.Version)
		if err != nil {
			return err
		}
		if now, err = server.Read(ctx, name); err != nil {
			return err
		}
		tried := fmt.Sprintf("%d writes at once, each on condition that the object has the version %s", probeWriters, short(before.Version))
		if before.Version == "" {
			tried = fmt.Sprintf("%d writes at once, each on condition that there is no such object", probeWriters)
		}
		switch {
		case wins > 1:
			return unfit("of %s, it acknowledged %d; exactly one may be", tried, wins)
		case wins == 1 && now.Version == before.Version:
			return unfit("of %s, it acknowledged one, and then the object still has this version", tried)
		case wins == 1:
			decided++
		case now.Version == before.Version && round >= 2*probeRounds:
			return unfit("it refused all of %s, which it has", tried)
		}
	}
	for _, refused := range []struct{ version, condition string }{
		{"", "there is no such object"},
		{before.Version, "it has the old version " + short(before.Version)},
	} {
		_, err := server.Write(ctx, name, probeData(), refused.version)
		if err == nil {
			return unfit("it replaced an object on condition that %s", refused.condition)
		}
		if !errors.Is(err, ErrChanged) {
			return err
		}
	}
	for range probeRounds {
		listed, err := server.List(ctx)
		if err != nil {
			return err
		}
		was := now
		if now, err = server.Read(ctx, name); err != nil || listed[name].Version == now.Version {
			return err
		}
		if was.Version == now.Version {
			return unfit("it lists the version %s of an object whose version is %s", short(listed[name].Version), short(now.Version))
		}
	}
	return nil // others write it all the time
}

// writeAtOnce makes several writes that require the same version, and returns
// how many the server acknowledged.
func writeAtOnce(ctx context.Context, server Server, name, version string) (acknowledged int, err error) {
	var errs [probeWriters]error
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = server.Write(ctx, name, probeData(), version) })
	}
	all.Wait()
	for _, e := range errs {
		if e == nil {
			acknowledged++
		} else if !errors.Is(e, ErrChanged) {
			err = e
		}
	}
	if acknowledged > 1 {
		err = nil // whatever the others say
	}
	return acknowledged, err
}

// probeData returns data that no other write has.
func probeData() []byte {
	const text = `{"purpose":"to find out whether this server honours conditional writes","nonce":"%s","padding":"%s"}` + "\n"
	return fmt.Appendf(nil, text, lease.NewHolder(), strings.Repeat("x", probeSize))
}

// short is a version for errors, which on some servers is the data.
func short(version string) string {
	const most = 64
	if len(version) > most {
		version = version[:most] + "…"
	}
	return strconv.Quote(version)
}

func unfit(format string, args ...any) error {
	return fmt.Errorf("%w: %s: this server does not honour conditional writes, so it would grant leases twice; use another one, or a newer version",
		lease.ErrMisconfigured, fmt.Sprintf(format, args...))
}
