package leasetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
)

// fake is a server in memory, which every client shares.
type fake struct {
	*memstore.Objects
	gate, answers  chan struct{} // each has an element while messages pass
	replica, given sync.Map      // name → the object before its last write; what Write was given
	lent           sync.Map      // version → data that Read returned
	deleted        sync.Map      // names
	closed         atomic.Bool   // a client was
	writing        atomic.Int64
	cut            atomic.Pointer[chan struct{}] // closed while connections are cut
	failures       atomic.Int64                  // since then
	since          atomic.Pointer[time.Time]
}

// errCut is returned while connections are cut.
var errCut = errors.New("connection refused")

// broken returns errCut, or what a flawed client makes of it.
func (f flawed) broken() error {
	switch f.failures.Add(1); f.flaw {
	case "every error is permanent":
		return fmt.Errorf("%w: %w", lease.ErrMisconfigured, errCut)
	case "takes an outage for a conflict":
		return driver.ErrChanged
	}
	return errCut
}

// gaveUp reports whether a flawed client does not try to connect any more.
func (f flawed) gaveUp() bool {
	since := f.since.Load()
	return f.flaw == "gives up after twenty tries" && f.failures.Load() > 20 ||
		f.flaw == "gives up after five minutes" && since != nil &&
			f.failures.Load() > 0 && time.Since(*since) > 5*time.Minute
}

// flawed is a client of it.
type flawed struct {
	*fake
	flaw string
	used *atomic.Bool
	old  *sync.Map // name → what the client read or wrote last; "" → its first list
}

// pass waits until messages pass. Each takes a while.
func (f flawed) pass(ctx context.Context, gate chan struct{}) error {
	f.used.Store(true)
	inFlight := ctx
	if f.flaw == "obeys a context before a request only" && ctx.Err() == nil {
		inFlight = context.Background()
	}
	cut := *f.cut.Load()
	select {
	case <-cut:
		if ctx.Err() == nil {
			return f.broken()
		}
	default:
		if f.gaveUp() {
			return errors.New("the client has given up")
		}
	}
	select {
	case <-gate:
		gate <- struct{}{}
		time.Sleep(rand.N(time.Millisecond))
	case <-cut:
		return f.broken()
	case <-inFlight.Done():
	}
	switch err := ctx.Err(); {
	case f.flaw == "Close of every client" && f.closed.Load():
		return errors.New("the client is closed")
	case err == nil:
		return nil
	case f.flaw == "errors of its own":
		return errors.New("timeout")
	case f.flaw == "notices late that a context is over":
		time.Sleep(6 * time.Second)
		fallthrough
	default:
		return err
	}
}

func (f flawed) Close() error {
	f.closed.Store(true)
	switch used := f.used.Load(); {
	case f.flaw == "Close of what is not open" && !used:
		return errors.New("it is not open")
	case f.flaw == "Close waits for the server":
		return f.pass(context.Background(), f.gate)
	case f.flaw == "Close takes a minute" && used:
		time.Sleep(time.Minute)
	}
	return nil
}

func (f flawed) Read(ctx context.Context, name string) (driver.Object, error) {
	if f.flaw == "obeys no context" {
		ctx = context.WithoutCancel(ctx)
	}
	sent := whole(time.Now())
	if err := f.pass(ctx, f.gate); err != nil {
		if f.flaw == "swallowed errors of reads" {
			err = nil
		}
		return driver.Object{}, err
	}
	o, err := f.Objects.Read(ctx, name)
	if err := f.pass(ctx, f.answers); err != nil {
		return driver.Object{}, err
	}
	switch f.flaw {
	case "deleted object":
		if string(o.Data) == tombstone {
			o.Data = nil
		}
	case "stale reads":
		if was, ok := f.old.Swap(name, o); ok {
			o = was.(driver.Object)
		}
	case "a cache in each client":
		was, _ := f.old.LoadOrStore(name, o)
		o = was.(driver.Object)
	case "a clock that stands still":
		o.Time = time.Now().Truncate(time.Hour)
	case "a clock of another zone":
		o.Time = o.Time.Add(time.Hour)
	case "a clock with fractions of a second":
		o.Time = o.Time.Add(time.Millisecond)
	case "the client's clock":
		o.Time = sent
	case "the client's clock after the response":
		o.Time = whole(time.Now())
	case "a place for each object":
		o.Place = name
	case "a place that copies share":
		o.Place = "server"
	case "a place that changes":
		if name == "config" {
			o.Place = o.Version
		}
	case "hash of the length":
		o.Version = fmt.Sprint(len(o.Data))
	case "versions that count from the creation":
		o.Version, o.Data = counted(o)
	case "reads of a replica":
		if was, ok := f.replica.Load(name); ok && rand.IntN(5) == 0 {
			o = was.(driver.Object)
		}
	case "trimmed text":
		o.Data = bytes.TrimSpace(o.Data)
	case "other ends of lines":
		o.Data = bytes.ReplaceAll(o.Data, []byte("\r\n"), []byte("\n"))
	case "at most 16 KB":
		o.Data = o.Data[:min(len(o.Data), 16<<10)]
	case "data that it needs itself":
		lent, _ := f.lent.LoadOrStore(o.Version, o.Data)
		o.Data = lent.([]byte)
	case "data that it was given":
		if given, ok := f.given.Load(name); ok {
			o.Data = bytes.Clone(given.([]byte))
		}
	case "no error for what is missing":
		if o.Version == "" {
			o.Version = "0"
		}
	case "an error for what is missing":
		if o.Version == "" {
			err = errors.New("not found")
		}
	}
	return o, err
}

func whole(t time.Time) time.Time { return t.Truncate(time.Second) }

// counted returns a version that counts the writes since the creation, and the data without it.
func counted(o driver.Object) (version string, data []byte) {
	v, data, _ := bytes.Cut(o.Data, []byte("|"))
	return string(v), data
}

func (f flawed) Write(ctx context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	if err := f.pass(ctx, f.gate); err != nil {
		if f.flaw == "swallowed errors" ||
			f.flaw == "swallows a cut in flight" && errors.Is(err, errCut) {
			err = nil
		}
		return driver.Object{Version: string(data)}, err
	}
	defer f.writing.Add(-1)
	if f.writing.Add(1) > 1 && f.flaw == "an error for one of two at once" {
		return driver.Object{}, errors.New("the database is locked")
	}
	now, _ := f.Objects.Read(ctx, name)
	unchanged, one := now.Version == version, rand.IntN(20) == 0
	switch f.flaw {
	case "an error for one of two at once":
		time.Sleep(time.Millisecond)
	case "no condition":
		version = now.Version
	case "no condition for a new object":
		if version == "" {
			version = now.Version
		}
	case "creates what is missing":
		if now.Version == "" {
			version = ""
		}
	case "compares the ends of versions":
		if now.Version != "" && strings.HasSuffix(version, now.Version) {
			version = now.Version
		}
	case "any object's version":
		all, _ := f.Objects.List(ctx)
		for _, o := range all {
			if o.Version == version {
				version = now.Version
			}
		}
	case "hash of the length":
		if version != "" && version == fmt.Sprint(len(now.Data)) {
			version = now.Version
		}
	case "versions that count from the creation":
		count, _ := counted(now)
		if count != version {
			return driver.Object{}, driver.ErrChanged
		}
		n, _ := strconv.Atoi(count)
		count = strconv.Itoa(n + 1)
		_, err := f.Objects.Write(ctx, name, append([]byte(count+"|"), data...), now.Version)
		return driver.Object{Version: count}, err
	case "yes to the same data":
		if string(now.Data) == string(data) {
			return now, nil
		}
	case "reads of a replica", "lists of a replica":
		if unchanged {
			f.replica.Store(name, now)
		}
	case "forgets a write in twenty":
		if unchanged && one {
			return driver.Object{Version: string(data)}, nil
		}
	case "undoes and refuses a write in twenty":
		if unchanged && one && version != "" {
			_, _ = f.Objects.Write(ctx, name, data, version)
			time.Sleep(5 * time.Millisecond)
			_, _ = f.Objects.Write(ctx, name, now.Data, string(data))
			return driver.Object{}, driver.ErrChanged
		}
	case "acknowledges before it writes":
		if unchanged {
			time.AfterFunc(5*time.Millisecond, func() {
				_, _ = f.Objects.Write(context.Background(), name, bytes.Clone(data), version)
			})
			return driver.Object{Version: string(data)}, nil
		}
	case "looks before it creates":
		if version == "" && unchanged {
			time.Sleep(50 * time.Microsecond)
			now, _ = f.Objects.Read(ctx, name)
			version = now.Version
		}
	case "compares before it writes":
		if unchanged {
			time.Sleep(rand.N(10 * time.Millisecond)) // other writes of a history end meanwhile
			now, _ = f.Objects.Read(ctx, name)
			version = now.Version
		}
	case "other versions of its own writes":
		version = strings.TrimPrefix(version, "W/")
	}
	o, err := f.Objects.Write(ctx, name, data, version)
	if err != nil && f.flaw == "conflicts are other errors" {
		err = errors.New("conflict")
	}
	if err != nil {
		return o, err
	}
	switch f.flaw {
	case "a write in twenty is made and refused":
		if one {
			return driver.Object{}, driver.ErrChanged
		}
	case "a cache in each client":
		f.old.Store(name, driver.Object{Data: bytes.Clone(data), Version: o.Version})
	case "data that it was given":
		f.given.Store(name, data)
	case "other versions of its own writes":
		o.Version = "W/" + o.Version
	case "no version of its own writes":
		o.Version = ""
	case "the version before":
		o.Version = version
	case "responds with other data":
		o.Data = []byte("{}")
	}
	return o, nil
}

func (f flawed) List(ctx context.Context) (map[string]driver.Object, error) {
	if f.flaw == "lists without end" {
		ctx = context.WithoutCancel(ctx)
	}
	if err := f.pass(ctx, f.gate); err != nil {
		if f.flaw == "swallowed errors of lists" {
			err = nil
		}
		return nil, err
	}
	all, err := f.Objects.List(ctx)
	switch f.flaw {
	case "first thousand":
		for i := 1000; i < 2000; i++ {
			delete(all, fmt.Sprintf("page-%04d", i))
		}
	case "an error for more than a thousand":
		if len(all) > 1000 {
			err = errors.New("the list is too long")
		}
	case "names with a prefix":
		for name, o := range maps.Clone(all) {
			delete(all, name)
			all["leases/"+name] = o
		}
	case "lists what was deleted":
		f.deleted.Range(func(name, _ any) bool {
			all[name.(string)] = driver.Object{}
			return true
		})
	case "one list for ever":
		first, _ := f.old.LoadOrStore("", all)
		return first.(map[string]driver.Object), nil
	case "lists of a replica":
		f.replica.Range(func(name, o any) bool {
			all[name.(string)] = o.(driver.Object)
			return true
		})
	case "versions that count from the creation":
		for name, o := range all {
			o.Version, o.Data = counted(o)
			all[name] = o
		}
	}
	return all, err
}

const tombstone = "(deleted)"

// storages returns storages whose clients have a flaw.
func storages(flaw string) func(testing.TB) Storage {
	one := &memstore.Objects{}
	return func(testing.TB) Storage {
		f := &fake{Objects: &memstore.Objects{Clock: time.Now}, gate: make(chan struct{}, 1),
			answers: make(chan struct{}, 1)}
		if flaw == "shared names" {
			f.Objects = one
		}
		f.gate <- struct{}{}
		f.answers <- struct{}{}
		connected := make(chan struct{})
		f.cut.Store(&connected)
		stop := func(gate chan struct{}) func() {
			<-gate
			return func() { gate <- struct{}{} }
		}
		return Storage{
			Open: func(string) (driver.Objects, error) {
				select {
				case <-*f.cut.Load():
					if flaw == "Open needs the server" {
						return nil, errCut
					}
				default:
				}
				c := flawed{f, flaw, new(atomic.Bool), new(sync.Map)}
				if flaw == "memory of its own" {
					c.fake = &fake{Objects: new(memstore.Objects), gate: f.gate, answers: f.answers}
					c.cut.Store(f.cut.Load())
				}
				return c, nil
			},
			Delete: func(name string) error {
				f.deleted.Store(name, nil)
				if flaw == "deleted object" {
					o, err := f.Read(context.Background(), name)
					if err == nil {
						_, err = f.Write(context.Background(), name, []byte(tombstone),
							o.Version)
					}
					return err
				}
				f.Delete(name)
				return nil
			},
			Stall: func() func() { return stop(f.gate) },
			Hold:  func() func() { return stop(f.answers) },
			Cut: func() func() {
				now := time.Now()
				f.since.Store(&now)
				close(*f.cut.Load())
				return sync.OnceFunc(func() {
					again := make(chan struct{})
					f.cut.Store(&again)
				})
			},
		}
	}
}

func TestRun(t *testing.T) { Run(t, storages("none")) }

// Each flaw fails the check that is for it, each time, with a message that says what is wrong.
func TestRunCatchesWrongServers(t *testing.T) {
	const (
		times     = 3
		older     = "which was known before: does a read see every write"
		forgotten = "is not among those that led to the last one"
		clock     = "it must be the server's clock"
		over      = " with a context that is over: got error <nil>"
	)
	for flaw, want := range map[string]string{
		"none":                          "",
		"no condition":                  "writes are not conditional",
		"no condition for a new object": "on condition that there is no such object, twice",
		"creates what is missing":       "Write succeeded with a version, of an object that",
		"compares the ends of versions": "Write succeeded with a version that it never had",
		"any object's version":          "Write succeeded with the version of another object",
		"versions that count from the creation": "Write succeeded with a version from before it " +
			"was deleted",
		"hash of the length":                    "must change with every write",
		"yes to the same data":                  "two copies of a process would both be told yes",
		"compares before it writes":             forgotten,
		"forgets a write in twenty":             forgotten,
		"acknowledges before it writes":         "does it see every write at once",
		"a write in twenty is made and refused": "was refused, but stored",
		"undoes and refuses a write in twenty":  "calls of page-0000: ",
		"conflicts are other errors":            "got error conflict, want ErrChanged",
		"an error for one of two at once":       "writes at once: got error the database is locked",
		"other versions of its own writes":      "as a Read returns it",
		"no version of its own writes":          "returned the version \"\"",
		"the version before":                    "want the new version",
		"responds with other data":              "and 2 bytes; want",
		"data that it was given":                "that differ from the",
		"data that it needs itself":             "that differ from the",
		"memory of its own":                     "another client reads 0 bytes",
		"shared names":                          "written to another storage only has the version",
		"trimmed text":                          "kept byte by byte",
		"other ends of lines":                   "kept byte by byte",
		"at most 16 KB":                         "reads 16384 bytes",
		"stale reads":                           "does it see every write at once",
		"a cache in each client":                "another client reads",
		"reads of a replica":                    older,
		"lists of a replica":                    older,
		"one list for ever":                     "List has 0 of 1200 objects",
		"first thousand":                        "List has 1000 of 1200 objects",
		"an error for more than a thousand":     "the list is too long",
		"names with a prefix":                   "List has \"\" as page-0000",
		"lists what was deleted":                "and is in a List: true",
		"deleted object":                        "an object that was deleted has the version",
		"no error for what is missing":          "an object that was never written has the version",
		"an error for what is missing":          "Read of page-0000: not found",
		"swallowed errors":                      "Write" + over,
		"swallowed errors of reads":             "Read" + over,
		"swallowed errors of lists":             "List" + over,
		"errors of its own":                     "got error timeout",
		"obeys no context":                      "Read" + over,
		"obeys a context before a request only": "it must obey its context in flight, too",
		"notices late that a context is over":   "it must obey its context in flight, too",
		"lists without end":                     "List" + over,
		"a clock that stands still":             clock,
		"a clock of another zone":               "want whole seconds of the server's clock",
		"a clock with fractions of a second":    "want whole seconds of the server's clock",
		"the client's clock":                    "which is the client's",
		"the client's clock after the response": "want the server's time when it responded",
		"a place for each object":               "that of the object \"config\" is \"config\"",
		"a place that copies share":             "a copy in another storage has the same place",
		"a place that changes":                  "a write has changed the place",
		"looks before it creates":               "writes are not conditional",
		"swallows a cut in flight":              "returned no error, and nothing was written",
		"every error is permanent":              "neither ErrChanged nor permanent",
		"takes an outage for a conflict":        "neither ErrChanged nor permanent",
		"Open needs the server":                 "it must send no request",
		"gives up after twenty tries":           "must try to connect for as long as it is used",
		"gives up after five minutes":           "must try to connect for as long as it is used",
		"Close of every client":                 "the client is closed",
		"Close takes a minute":                  "it has not returned",
		"Close waits for the server":            "while the server does not answer: it has not",
		"Close of what is not open":             "Close before the first call",
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			for range times {
				synctest.Test(t, func(t *testing.T) {
					said := ""
					for _, c := range checks {
						newStorage := storages(flaw)
						said += judged(t, func(tb testing.TB) {
							c.run(tb, func(tb testing.TB) Storage {
								s := newStorage(tb)
								s.Outage = 10 * time.Minute
								return s
							})
						}).said
					}
					time.Sleep(time.Hour) // until every Close has returned
					if !strings.Contains(said, want) || want == "" && said != "" {
						t.Errorf("the checks say %q, want %q", said, want)
					}
				})
			}
		})
	}
}

// verdicts is a test that is expected to fail.
type verdicts struct {
	testing.TB
	mu     sync.Mutex
	failed bool
	said   string
}

// judged runs a test that may end its goroutine.
func judged(tb testing.TB, run func(tb testing.TB)) *verdicts {
	v := &verdicts{TB: tb}
	var done sync.WaitGroup
	done.Go(func() { run(v) })
	done.Wait()
	return v
}

func (v *verdicts) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed = true
	if len(v.said) < 10_000 {
		v.said += fmt.Sprintf(format, args...) + "\n"
	}
}

func (v *verdicts) Failed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failed
}

func (v *verdicts) Helper()             {}
func (v *verdicts) Logf(string, ...any) {}
func (v *verdicts) Error(args ...any)   { v.Errorf("%s", fmt.Sprint(args...)) }
func (v *verdicts) Fatal(args ...any)   { v.Error(args...); runtime.Goexit() }
func (v *verdicts) Fatalf(format string, args ...any) {
	v.Errorf(format, args...)
	runtime.Goexit()
}
