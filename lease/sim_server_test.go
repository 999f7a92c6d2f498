package lease_test

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/internal/engine"
	"github.com/traceflake/traceflake/lease/stores"
)

// server is where objects are. After a failover there are two, which may both be reached. The
// version of an object is its data, so versions recur when a server is set back.
type server struct {
	w       *world
	id      int
	place   string // "": unknown
	objects map[string]string
	states  []map[string]string // the objects after each write, in order
}

// newServer returns a server with these objects, at a place that was drawn for it.
func (w *world) newServer(objects map[string]string) *server {
	s := &server{w: w, id: len(w.servers), objects: maps.Clone(objects)}
	s.move()
	w.servers = append(w.servers, s)
	return s
}

func (s *server) move() { s.place = hex(s.w.rng) }

// Read implements [driver.Objects].
func (s *server) Read(_ context.Context, name string) (driver.Object, error) {
	from := s
	if name == configName && s.w.wrong("a description from a replica") {
		from = s.w.servers[0]
	}
	data := from.objects[name]
	o := driver.Object{Data: []byte(data), Version: data, Time: s.w.time().Truncate(time.Second)}
	switch {
	case s.w.wrong("a place that stays"):
		o.Place = "here"
	case s.w.compares || name == configName:
		o.Place = from.place
	}
	return o, nil
}

const configName = "config"

// Write implements [driver.Objects].
func (s *server) Write(_ context.Context, name string, data []byte,
	version, place string) (driver.Object, error) {
	switch {
	case s.w.compares && place != s.place && !s.w.wrong("a place that stays"):
		return driver.Object{}, lease.ErrMoved
	case s.objects[name] != version && !s.w.wrong("writes without a condition"):
		return driver.Object{}, driver.ErrChanged
	}
	old := s.objects
	s.objects = maps.Clone(old)
	s.objects[name] = string(data)
	if s.w.wrong("a store that forgets acknowledged writes") && s.w.chance(0.1) {
		s.objects = old
	}
	s.states = append(s.states, s.objects)
	return driver.Object{Version: string(data)}, nil
}

// earlier returns the objects as they were some writes ago: mostly few.
func (s *server) earlier() map[string]string {
	ago := pick(s.w, 1+s.w.rng.IntN(4), 1+s.w.rng.IntN(len(s.states)))
	return s.states[max(len(s.states)-1-ago, 0)]
}

// failOver promotes a standby that lacks the last writes, at another place. The hosts reach it now
// or later; the old server still serves those that do not.
func (w *world) failOver() {
	old := pick(w, w.hosts...).server
	s := w.newServer(old.earlier())
	s.states = []map[string]string{s.objects}
	w.logf("server %d fails over to server %d, which lacks writes", old.id, s.id)
	for _, h := range w.hosts {
		if h.server == old && w.rng.IntN(4) > 0 {
			w.after(pick(w, 0, w.between(0, time.Second), w.between(0, w.ttl)),
				func() { h.server = s })
		}
	}
}

// setBack sets a server back at its place, wholly or in part. Its histories are tainted: IDs
// generated in them may be equal.
func (s *server) setBack() {
	back, w := s.earlier(), s.w
	what := "wholly"
	if w.rng.IntN(3) == 0 {
		what = pick(w, slices.Sorted(maps.Keys(s.objects))...)
	}
	s.objects = maps.Clone(s.objects)
	for name := range s.objects {
		if what == "wholly" || name == what {
			s.objects[name] = back[name]
		}
	}
	s.states = append(s.states, s.objects)
	w.taint(s)
	w.logf("server %d is set back: %s", s.id, what)
}

var historyID = regexp.MustCompile("[0-9a-f]{32}")

// taint records the histories that a server that was set back shows.
func (w *world) taint(s *server) {
	for _, data := range s.objects {
		for _, id := range historyID.FindAllString(data, -1) {
			w.tainted[id] = true
		}
	}
}

// place changes where a server is, or hides it, and brings it back.
func (s *server) changePlace() {
	s.move()
	if s.w.rng.IntN(3) == 0 {
		s.place = ""
		s.w.after(s.w.between(0, s.w.ttl), s.move)
	}
	s.w.logf("server %d is at place %q", s.id, s.place)
}

// create creates the store.
func (w *world) create(nodes lease.Description) {
	nodes.LongestTTL = (w.ttl + time.Second - 1).Truncate(time.Second)
	w.about = nodes
	s := w.newServer(map[string]string{})
	w.about = must(w.engine(s, nil).Create(context.Background(), nodes, testCodec))
	s.states = []map[string]string{s.objects} // there is no backup from before
	w.logf("the store has history %s", w.about.ID)
}

// engine returns a client of objects, for a process or the world. Two pages have all blocks.
func (w *world) engine(o driver.Objects, p *process) stores.Store {
	s := must(engine.New(o, driver.Layout{Name: "simulated",
		BlocksPerPage: uint32(w.about.Blocks()+1) / 2}))
	s.Simulate(func(b []byte) {
		if p == nil {
			copy(b, hex(w.rng))
			return
		}
		copy(b, p.nonce())
	}, func(time.Duration) { p.sleep(p.between(time.Second/2, 3*time.Second/2)) })
	return s
}
