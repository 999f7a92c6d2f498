package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/internal/engine"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
)

// world is a store of one page and its clients. Their requests are executed in a random order,
// among them: backups are taken and put back, whole or in part; failovers lose what was written
// since a backup; requests and answers are lost, and a write is delivered again later.
type world struct {
	*rand.Rand
	server  memstore.Objects
	flaw    string
	rules   rules
	pending [clients]atomic.Pointer[request]

	backup  map[string][]byte
	late    func() // delivers a write again, once
	setBack int    // how often
	// healed is set unless the store was set back in place and no history was completed since:
	// then nobody can have noticed.
	healed  bool
	granted map[string]grant // by Acquired
	equal   string           // two equal grants
	trace   []string
}

// rules are what the world does.
type rules struct {
	inPlace bool // backups are put back without a failover
	weak    bool // the server compares no place, and shows it with the description only
}

const clients = 3

// request is a client's, until it is executed.
type request struct {
	text string
	send func()
	done chan struct{}
}

type grant struct {
	lease.Grant
	client int
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// link is a client's connection to the server.
type link struct {
	*world
	client int
	wrote  bool          // a page last
	about  driver.Object // the description, as it was read last
}

// call waits until the world executes a request.
func (l *link) call(ctx context.Context, text string, send func()) error {
	r := &request{text, send, make(chan struct{})}
	l.pending[l.client].Store(r)
	<-r.done
	return ctx.Err()
}

func (l *link) Read(ctx context.Context, name string) (o driver.Object, err error) {
	lost := false
	err = l.call(ctx, "reads "+name, func() {
		o, err = l.server.Read(ctx, name)
		lost = l.IntN(20) == 0
	})
	switch {
	case lost:
		return driver.Object{}, errLost
	case name != "config" && l.rules.weak:
		o.Place = ""
	case name == "config":
		if l.flaw == "an unknown place is like any" && l.setBack > 0 {
			if _, at, ok := strings.Cut(string(o.Data), `"Place":"`); ok {
				o.Place, _, _ = strings.Cut(at, `"`)
			}
		}
		if l.flaw == "compared before the write only" && l.wrote {
			o = l.about
		}
		l.wrote, l.about = false, o
	}
	return o, err
}

func (l *link) Write(ctx context.Context, name string, data []byte,
	version, place string) (o driver.Object, err error) {
	complete := bytes.Contains(data, []byte(`"Complete":true`))
	send := func() {
		if l.rules.weak || l.flaw == "an unknown place is like any" ||
			l.flaw == "compared before the write only" {
			now, _ := l.server.Read(ctx, name)
			place = now.Place
		}
		if o, err = l.server.Write(ctx, name, data, version, place); err == nil && complete {
			l.healed = true
		}
	}
	lost, again := false, false
	failed := l.call(ctx, fmt.Sprintf("writes %s, complete: %t", name, complete), func() {
		lost, again = l.IntN(20) == 0, l.IntN(20) == 0
		if lost && l.IntN(2) == 0 {
			return // the request, rather than the answer
		}
		send()
		if again && l.late == nil {
			l.late = func() {
				was, failed := o, err
				send()
				o, err = was, failed
			}
		}
	})
	if l.wrote = name != "config" && err == nil; lost {
		return driver.Object{}, errLost
	}
	return o, errors.Join(failed, err)
}

// run lets three clients work until each has taken some steps.
func (w *world) run(t *testing.T) {
	const steps = 12
	var left atomic.Int64
	left.Store(clients)
	for i := range clients {
		l := &link{world: w, client: i}
		s := client(l, 2)
		go func() {
			c := process{s, l, "", lease.Grant{}}
			for range steps {
				c.step(t.Context())
			}
			left.Add(-1)
		}()
		synctest.Wait()
	}
	for ; left.Load() > 0; synctest.Wait() {
		var waiting []int
		for i := range w.pending {
			if w.pending[i].Load() != nil {
				waiting = append(waiting, i)
			}
		}
		switch n := w.IntN(40); {
		case len(waiting) == 0:
			time.Sleep(time.Second) // for those who wait for a begin
		case n == 0 && w.backup == nil:
			w.note("backup")
			w.backup = w.server.Data()
		case n == 1 && w.backup != nil && w.setBack < 2:
			w.setBackTo(t)
		case n == 2 && w.late != nil:
			w.note("a write is delivered late")
			w.late()
			w.late = func() {}
		default:
			i := waiting[w.IntN(len(waiting))]
			r := w.pending[i].Swap(nil)
			w.note("client %d %s", i, r.text)
			r.send()
			close(r.done)
		}
	}
}

func (w *world) setBackTo(t *testing.T) {
	w.setBack++
	if !w.rules.inPlace {
		w.note("failover")
		w.server.Set(w.backup)
		w.server.Move()
		return
	}
	part := maps.Clone(w.backup)
	switch w.IntN(3) {
	case 0:
		delete(part, "config")
	case 1:
		delete(part, "page-0000")
	}
	w.note("set back in place: %q", slices.Sorted(maps.Keys(part)))
	w.server.Set(part)
	w.healed = false
}

// process is a client with what it knows.
type process struct {
	stores.Store
	*link
	history string
	held    lease.Grant
}

// step acquires a block, or renews one, and does what a Keeper does if the store has moved or
// forgotten. Sometimes it begins a history as an operator does.
func (p *process) step(ctx context.Context) {
	if p.history == "" {
		d, _ := p.Describe(ctx)
		p.history = d.ID
	}
	var g lease.Grant
	var err error
	renews := p.held.Store == p.history && p.history != "" && p.IntN(2) == 0
	switch {
	case p.IntN(8) == 0:
		err = p.begin(ctx, lease.Rekey)
	case renews:
		r := calls.Request("", t0.Add(time.Minute))
		g, err = p.Renew(ctx, p.held, r)
	default:
		g, err = p.Acquire(ctx, calls.Request(p.history, t0.Add(time.Duration(p.IntN(3))*
			40*time.Second)))
	}
	switch {
	case errors.Is(err, lease.ErrMoved), errors.Is(err, lease.ErrBeginning):
		err = p.begin(ctx, lease.Moved)
	case errors.Is(err, lease.ErrContradicted):
		err = p.begin(ctx, lease.Contradicted)
	case err == nil && g.Store != "":
		p.take(g)
	}
	if errors.Is(err, lease.ErrHistory) {
		p.history = ""
	}
}

func (p *process) begin(ctx context.Context, reason string) error {
	if p.flaw == "a begin is helped" && engine.Help(ctx, p.link) {
		return lease.ErrHistory
	}
	d, err := p.Begin(ctx, lease.BeginRequest{Leaves: p.history, Reason: reason, Now: t0,
		Secrets: calls.Secrets()})
	if err == nil {
		p.history = d.ID
	}
	return err
}

// take records a grant, and compares it with all others.
func (p *process) take(g lease.Grant) {
	p.note("client %d is granted node %d of %.4s until %s", p.client, g.Node, g.Store,
		g.End.Format(time.TimeOnly))
	for _, other := range p.granted {
		if other.Acquired != g.Acquired && other.Store == g.Store && other.Node == g.Node &&
			other.Start.Before(g.End) && g.Start.Before(other.End) && p.healed {
			p.equal = fmt.Sprintf("%+v and %+v", other.Grant, g)
		}
	}
	p.granted[g.Acquired] = grant{g, p.client}
	p.held = g
}

// play plays a world, and returns two equal grants.
func play(t *testing.T, seed uint64, flaw string, r rules) (equal string) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{Rand: rand.New(rand.NewPCG(seed, 0)), flaw: flaw, rules: r, healed: true,
			granted: map[string]grant{}}
		if _, err := client(&w.server, 2).Create(t.Context(), few(2),
			calls.Secret()); err != nil {
			t.Fatal(err)
		}
		w.run(t)
		if equal = w.equal; equal != "" && flaw == "" {
			t.Errorf("seed %d, %+v: %s:\n%s", seed, r, equal, strings.Join(w.trace, "\n"))
		}
	})
	return equal
}

// With the right rules no second of a node is granted twice in a history: never if the place shows
// each failover, and otherwise only until a history was begun. Each wrong rule is found.
func TestWorlds(t *testing.T) {
	const seeds, most = 100, 6000
	for _, r := range []rules{{}, {weak: true}, {inPlace: true}, {inPlace: true, weak: true}} {
		for seed := range uint64(seeds) {
			if play(t, seed, "", r); t.Failed() {
				return
			}
		}
	}
	for flaw, r := range map[string]rules{
		"a begin is helped":              {inPlace: true},
		"an unknown place is like any":   {},
		"compared before the write only": {weak: true},
	} {
		found := false
		for seed := uint64(0); seed < most && !found; seed++ {
			found = play(t, seed, flaw, r) != ""
		}
		if !found {
			t.Errorf("%s: not found", flaw)
		}
	}
}
