package lease_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

func (w *world) newSecret() *randflake.Codec {
	w.secrets++
	var key [16]byte
	binary.BigEndian.PutUint64(key[:], w.secrets)
	return must(randflake.NewCodec(key[:]))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// server is an address at which there is a store, most of the time.
type server struct {
	w       *world
	secret  *randflake.Codec  // of the store
	file    *randflake.Codec  // what processes find in their secret file
	about   lease.Description // of the store; without an ID there is none
	objects *memstore.Objects
	store   stores.Store
	granted map[uint32]*granted // the last grant of each block, by its first node
	clock   time.Duration       // how far its clock is ahead
	closed  bool                // no process can reach it
	spent   bool                // its clock was ahead: blocks may be granted far in the future
}

// wrongClock sets the clock of another machine, which may be wrong by hours.
func (s *server) wrongClock() {
	w := s.w
	s.clock = pick(w, 0, w.between(0, 26*time.Hour), -w.between(0, 26*time.Hour))
	s.spent = s.spent || s.clock > 0
}

func (w *world) newServer(with *randflake.Codec, nodes lease.Description) *server {
	s := &server{w: w}
	s.create(with, nodes)
	s.file = with
	return s
}

// create creates a store with a secret.
func (s *server) create(with *randflake.Codec, nodes lease.Description) {
	s.about = nodes
	s.about.ID, s.about.Replaced = s.w.newID(), ""
	s.about.LongestTTL = (s.w.ttl + time.Second - 1).Truncate(time.Second)
	s.about.Secrets = []string{s.about.Fingerprint(with)}
	s.secret, s.granted = with, map[uint32]*granted{}
	s.objects = &memstore.Objects{Clock: s.Now}
	s.store = s.w.engine(s.objects)
	if err := s.store.Create(context.Background(), s.about); err != nil {
		panic(err)
	}
}

func (w *world) newID() string {
	w.stores++
	return fmt.Sprintf("%032x", w.stores)
}

// engine returns a client of objects. Two pages have all blocks: an Acquire then reads one page at
// a time, in the process's coroutine.
func (w *world) engine(o driver.Objects) stores.Store {
	return must(stores.New(o, driver.Layout{Name: "simulated",
		BlocksPerPage: uint32(w.nodes.Blocks())}))
}

// Now is the store's clock.
func (s *server) Now() time.Time { return s.w.time().Add(s.clock) }

// backup returns a function that loads the present state of the store and of its grants to a
// server.
func (s *server) backup() (load func(*server)) {
	ctx := context.Background()
	objects, was := must(s.objects.List(ctx)), *s
	live, saved := maps.Clone(s.granted), map[uint32]granted{}
	for node, g := range live {
		saved[node] = *g
	}
	return func(to *server) {
		to.objects.Delete("")
		for name, o := range objects {
			must(to.objects.Write(ctx, name, o.Data, ""))
		}
		to.about, to.secret, to.granted = was.about, was.secret, maps.Clone(live)
		for node, was := range saved {
			if *live[node] != was { // its holder knows of later writes
				to.granted[node] = &was
			}
		}
	}
}

// rollOut rolls out a store with a new secret at another address, process by process: a new one, or
// a copy of the old one, which stays. Sometimes the rollout ends halfway, or is undone.
func (s *server) rollOut() {
	w := s.w
	with := w.newSecret()
	if w.wrong("a new store with the old secret at once") {
		with = s.secret
	}
	next := w.newServer(with, s.about)
	w.logf("a store with a new secret is rolled out")
	if w.rng.IntN(2) == 0 && !w.wrong("a new store with the old secret at once") {
		s.backup()(next)
		w.logf("it is a copy")
		next.wrongClock()
		if !w.wrong("a copy with the old secret") {
			next.replace()
		}
		next.file = next.secret
	}
	for i := range w.servers {
		if w.servers[i] == s && w.rng.IntN(4) > 0 {
			w.servers[i] = next
		}
	}
	for _, h := range w.hosts {
		if h.server == s && w.rng.IntN(4) > 0 {
			h.server = next
			w.restart(h, s)
		}
	}
}

// restart restarts most of a host's processes that use a server, each some time later.
func (w *world) restart(h *host, s *server) {
	for _, p := range w.processes {
		if p.host == h && p.server == s && p.runs() && w.rng.IntN(4) > 0 {
			w.after(w.between(0, 3*w.ttl), func() { // its settings are changed
				if p.runs() {
					p.close()
					w.start(h)
				}
			})
		}
	}
}

// lose loses the store, as when its table is dropped. Then an operator creates another store, whose
// new secret processes get some time later.
func (s *server) lose() {
	w, nodes := s.w, s.about
	w.logf("a store is lost")
	if w.wrong("a store that creates itself") {
		s.create(s.secret, nodes)
		return
	}
	s.about = lease.Description{}
	s.objects.Delete("")
	w.after(pick(w, 0, w.between(0, w.ttl)), func() {
		s.create(w.newSecret(), nodes)
		w.logf("a store is created with a new secret")
		s.distribute()
	})
}

// distribute gives processes the store's secret some time later.
func (s *server) distribute() {
	secret := s.secret
	s.w.after(s.w.between(0, 2*s.w.ttl), func() {
		if s.secret == secret {
			s.file = secret
		}
	})
}

// operator is one who replaces the secret of a store, with what the unfinished secret file says.
type operator struct {
	id     string
	secret *randflake.Codec
}

// replace gives the store a new secret, as an operator does after a restore. No process reaches the
// store before that has succeeded. Sometimes the command is interrupted, and another operator gives
// the same command, or the same one repeats it.
func (s *server) replace() {
	w, old := s.w, s.about.ID
	one, other := operator{w.newID(), w.newSecret()}, operator{w.newID(), w.newSecret()}
	if w.wrong("histories are numbered in the store") {
		one = w.numbered(old)
		other = one
	}
	run := func(o operator, objects driver.Objects) error {
		fingerprint := lease.Description{ID: o.id}.Fingerprint(o.secret)
		return w.engine(objects).Replace(context.Background(), old, o.id,
			fingerprint)
	}
	finish := func(by, refused operator) {
		if err := run(by, s.objects); err != nil {
			by, refused = refused, by
			if err := run(by, s.objects); err != nil {
				panic(err)
			}
		}
		if err := run(refused, s.objects); by != refused && !errors.Is(err, lease.ErrReplaced) {
			w.fail("replaced twice", "the second operator's command returns %v", err)
		}
		s.about = must(s.store.Describe(context.Background()))
		s.secret, s.granted = by.secret, map[uint32]*granted{}
		s.closed, s.spent = false, s.clock > 0 // no block is granted yet
		w.logf("the secret of a store is replaced")
		s.distribute()
	}
	if s.closed = true; w.rng.IntN(2) == 0 {
		finish(one, other)
		return
	}
	first := fmt.Sprintf("page-%04d", s.about.First/s.about.BlockSize/uint32(w.nodes.Blocks()))
	if err := run(one, breaking{s.objects, pick(w, "", "config", first)}); err != nil &&
		!errors.Is(err, errNoAnswer) {
		panic(err)
	}
	w.logf("the replacement of a secret is interrupted")
	if w.rng.IntN(2) == 0 {
		one, other = other, one
	}
	w.after(w.between(0, w.ttl), func() { finish(one, other) })
}

// numbered returns the history after the one with an ID, if the store counts them.
func (w *world) numbered(old string) operator {
	if w.histories[old].secret == nil {
		w.histories[old] = operator{old[1:] + "1", w.newSecret()}
	}
	return w.histories[old]
}

// breaking is a connection that is lost before objects after the last one are written.
type breaking struct {
	driver.Objects
	last string
}

func (b breaking) Write(ctx context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	if name > b.last {
		return driver.Object{}, errNoAnswer
	}
	return b.Objects.Write(ctx, name, data, version)
}
