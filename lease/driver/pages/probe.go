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
	"time"

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
	// In each of probeRounds rounds probeWriters write at once.
	probeRounds  = 5
	probeWriters = 8
	// probeSize is large enough for [Halfway]: servers read some kilobytes before
	// they look at a request.
	probeSize = 32 << 10
	// halfwayWait is how long a write waits for the others, one of which may have
	// been refused before it came so far, and halfwayPause how long it then gives
	// the server to look at all of them.
	halfwayWait  = 250 * time.Millisecond
	halfwayPause = 50 * time.Millisecond
)

// Halfway is for a [Server] that sends data over a network. Write calls it after
// it has sent a part of the data. In a probe it returns when all writes at once
// have come so far, otherwise at once. A server that checks conditions when a
// write begins, and not when it ends, then takes them all: Versity's gateway
// 1.6.0, whose window is a millisecond or two, passed half of the probes without.
func Halfway(ctx context.Context) {
	if meet, ok := ctx.Value(halfwayKey{}).(func()); ok {
		meet()
	}
}

type halfwayKey struct{}

// meeting returns a context whose writes wait for each other in Halfway.
func meeting(ctx context.Context, writers int64) context.Context {
	var here atomic.Int64
	all := make(chan struct{})
	return context.WithValue(ctx, halfwayKey{}, func() {
		if here.Add(1) == writers {
			close(all)
		}
		select {
		case <-all:
			time.Sleep(halfwayPause)
		case <-ctx.Done():
		case <-time.After(halfwayWait):
		}
	})
}

// probed is the state of a store's probe.
type probed struct {
	done atomic.Bool
	turn chan struct{} // has an element while a call probes

	// Only the call that probes uses these. A call that fails, because a response
	// was lost, leaves the next one less to do.
	name   string
	rounds int
	last   Object // after the last round
	old    string // the version before it
}

// trust probes the server before the first write, if each process does.
func (s *Store) trust(ctx context.Context) error {
	if s.layout.Probe != ProbeEachStart {
		return nil
	}
	return s.probe(ctx)
}

// trustNew probes the server before a store is created.
func (s *Store) trustNew(ctx context.Context) error {
	if s.layout.Probe == ProbeNever {
		return nil
	}
	return s.probe(ctx)
}

func (s *Store) probe(ctx context.Context) error {
	p := &s.probed
	if p.done.Load() {
		return nil
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.done.Load() {
		return nil
	}
	if p.name == "" {
		p.name = probePrefix + "00"
		if s.layout.Probe == ProbeEachStart {
			p.name = fmt.Sprintf("%s%02x", probePrefix, rand.N(probeObjects))
		}
	}
	if err := p.probe(ctx, s.server); err != nil {
		return fmt.Errorf("trying out the server with the object %s: %w", p.name, err)
	}
	p.done.Store(true)
	return nil
}

// probe returns an error unless, of several writes at once that require the same
// version, the server takes exactly one, several times; refuses writes that
// require an old version or none; and lists the version that it reads. Probes of
// other processes on the same object can only make it try more often.
func (p *probed) probe(ctx context.Context, server Server) (err error) {
	for refused := 0; p.rounds < probeRounds; {
		before, err := patiently(ctx, func() (Object, error) { return server.Read(ctx, p.name) })
		if err != nil {
			return err
		}
		acknowledged, err := p.writeAtOnce(ctx, server, before.Version)
		if err != nil {
			return err
		}
		if p.last, err = patiently(ctx, func() (Object, error) { return server.Read(ctx, p.name) }); err != nil {
			return err
		}
		p.old = before.Version
		tried := fmt.Sprintf("%d writes at once, each on condition that the object has the version %s", probeWriters, short(p.old))
		if p.old == "" {
			tried = fmt.Sprintf("%d writes at once, each on condition that there is no such object", probeWriters)
		}
		switch changed := p.last.Version != p.old; {
		case acknowledged > 1:
			return unfit("of %s, it acknowledged %d; exactly one may be", tried, acknowledged)
		case acknowledged == 1 && !changed:
			return unfit("of %s, it acknowledged one, and then the object still has this version", tried)
		case acknowledged == 1:
			p.rounds++
		case !changed:
			if refused++; refused == 2*probeRounds {
				return unfit("it refused all of %s, which it has", tried)
			}
		}
	}
	for _, condition := range []string{"", p.old} {
		_, err := patiently(ctx, func() (Object, error) { return server.Write(ctx, p.name, probeData(), condition) })
		switch {
		case err == nil && condition == "":
			return unfit("it replaced an object on condition that there is no such object")
		case err == nil:
			return unfit("it replaced an object on condition that it has the old version %s", short(condition))
		case !errors.Is(err, ErrChanged):
			return err
		}
	}
	for range probeRounds {
		listed, err := patiently(ctx, func() (map[string]Object, error) { return server.List(ctx) })
		if err != nil {
			return err
		}
		was := p.last
		if p.last, err = server.Read(ctx, p.name); err != nil || listed[p.name].Version == p.last.Version {
			return err
		}
		if was.Version == p.last.Version {
			return unfit("it lists the version %s of an object whose version is %s", short(listed[p.name].Version), short(was.Version))
		}
	}
	return nil // others write it all the time
}

// patiently makes a request of the probe, which may be made again, up to three
// times until it has a definite answer.
func patiently[T any](ctx context.Context, request func() (T, error)) (answer T, err error) {
	for range 3 {
		answer, err = request()
		if err == nil || errors.Is(err, ErrChanged) || errors.Is(err, lease.ErrMisconfigured) || ctx.Err() != nil {
			break
		}
	}
	return answer, err
}

// writeAtOnce makes several writes that require the same version, and returns
// how many the server acknowledged. It fails if more than half have no answer:
// fewer show little.
func (p *probed) writeAtOnce(ctx context.Context, server Server, version string) (acknowledged int, err error) {
	var errs [probeWriters]error
	var all sync.WaitGroup
	ctx = meeting(ctx, probeWriters)
	for i := range errs {
		all.Go(func() { _, errs[i] = server.Write(ctx, p.name, probeData(), version) })
	}
	all.Wait()
	unanswered := 0
	for _, e := range errs {
		switch {
		case e == nil:
			acknowledged++
		case !errors.Is(e, ErrChanged):
			unanswered, err = unanswered+1, e
		}
	}
	if acknowledged > 1 || unanswered <= probeWriters/2 && !errors.Is(err, lease.ErrMisconfigured) {
		err = nil
	}
	return acknowledged, err
}

// probeData returns data that no other write has.
func probeData() []byte {
	const text = `{"purpose":"to find out whether this server honours conditional writes","nonce":"%s","padding":"%s"}` + "\n"
	return fmt.Appendf(nil, text, lease.NewNonce(), strings.Repeat("x", probeSize))
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
