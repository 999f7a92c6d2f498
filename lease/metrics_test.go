package lease_test

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/traceflake/traceflake/internal/metrictest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
)

// metered returns an option that provides meters, and a function that returns the values of all
// metrics by name, unit and attributes.
func metered(t *testing.T) (lease.Option, func() map[string]float64) {
	t.Helper()
	reader := sdk.NewManualReader()
	return lease.WithMeterProvider(sdk.NewMeterProvider(sdk.WithReader(reader))),
		func() map[string]float64 { return metrictest.Collect(t, reader) }
}

const (
	blocks    = "traceflake.lease.blocks {block}"
	all       = "traceflake.lease.store.blocks {block}"
	remaining = "traceflake.lease.remaining s"
	ttl       = "traceflake.lease.ttl s"
	behind    = "traceflake.lease.clock_behind s"
	drops     = "traceflake.lease.drops {grant} traceflake.lease.drop.reason="
	histories = "traceflake.lease.histories {history} traceflake.lease.history.reason="
)

// requests is the name of the series of an operation and an outcome.
func requests(operation, outcome string) string {
	if outcome != "" {
		outcome = "error.type=" + outcome + ","
	}
	return "traceflake.lease.requests {request} " + outcome + "traceflake.lease.operation=" +
		operation
}

// A rate misses the first count of a series unless the series existed before, at 0: exactly the
// series in which a single count matters do.
func TestMetrics(t *testing.T) {
	option, collect := metered(t)
	b := newBench(t, option)
	want := map[string]float64{blocks: 0, remaining: 0, ttl: 10, behind: 0,
		histories + lease.Moved: 0, histories + lease.Contradicted: 0,
		requests("acquire", "no_free_node"): 0}
	for _, reason := range []string{"clock_gap", "clock_behind", "store_contradiction", "cloned",
		"restored", "taken"} {
		want[drops+reason] = 0
	}
	check := func(changed map[string]float64) {
		t.Helper()
		maps.Copy(want, changed)
		if got := collect(); !maps.Equal(got, want) {
			t.Errorf("the metrics are\n%v, want\n%v", got, want)
		}
	}
	check(nil)
	b.store.on = func(c *call) {
		if c.send(); c.op == "acquire" {
			c.err = lease.ErrNoFreeNode
		}
	}
	b.Step(t.Context())
	check(map[string]float64{requests("describe", ""): 1, requests("acquire", "no_free_node"): 1,
		all: 4})
	b.store.on = nil
	b.pass(6 * time.Second)
	check(map[string]float64{
		// the first proves the grant, whose nonce was repeated
		requests("acquire", ""): 1, requests("renew", ""): 2,
		blocks: 1, remaining: b.block(0).End.Sub(b.clock.Now()).Seconds(),
	})
	b.store.on = fails(errAway)
	b.next()
	b.Step(t.Context())
	check(map[string]float64{requests("renew", "_OTHER"): 1, requests("get", "_OTHER"): 1,
		remaining: b.block(0).End.Sub(b.clock.Now()).Seconds()})
	b.store.on = fails(lease.ErrLost)
	b.clock.Step(time.Hour)
	b.Step(t.Context())
	check(map[string]float64{drops + "clock_gap": 1, requests("acquire", "lost"): 1, blocks: 0,
		remaining: 0})
}

// A clock that is behind the store's is measured at each write, and reported when it begins.
func TestClockBehind(t *testing.T) {
	option, collect := metered(t)
	b := newBench(t, option)
	var off time.Duration
	b.store.on = func(c *call) {
		c.send()
		c.grant.Behind = off
	}
	for i, c := range []struct {
		behind  time.Duration
		reports int
	}{{2 * time.Hour, 1}, {3 * time.Hour, 1}, {0, 1}, {time.Hour, 2}} {
		off = c.behind
		b.pass(6 * time.Second) // the first lease, and then a renewal
		for _, report := range b.reports {
			if text := report.Error(); !strings.Contains(text, "behind the store's") ||
				!strings.Contains(text, "set this machine's clock") {
				t.Errorf("reported %s", text)
			}
		}
		if got := collect()[behind]; got != c.behind.Seconds() || len(b.reports) != c.reports {
			t.Errorf("step %d: %v s, %d reports; want %+v", i, got, len(b.reports), c)
		}
	}
}

// docs/metrics.md lists each operation and each outcome of a request, and no others.
func TestPageListsRequests(t *testing.T) {
	text := must(os.ReadFile("../docs/metrics.md"))
	_, section, _ := strings.Cut(string(text), "## `traceflake.lease.requests`")
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^- `([a-zA-Z_`, ]+)`:").FindAllStringSubmatch(
		section, -1) {
		listed = append(listed, strings.Split(row[1], "`, `")...)
	}
	want := lease.RequestValues()
	slices.Sort(want)
	if slices.Sort(listed); !slices.Equal(listed, want) {
		t.Errorf("the page lists\n%q, want\n%q", listed, want)
	}
}

// globalReader sets OpenTelemetry's meter provider, which a process can do only once.
var globalReader = sync.OnceValue(func() sdk.Reader {
	reader := sdk.NewManualReader()
	otel.SetMeterProvider(sdk.NewMeterProvider(sdk.WithReader(reader)))
	return reader
})

// A program may set its meter provider after starting the Keeper. Close ends the metrics.
func TestRequestsBeforeTheProvider(t *testing.T) {
	failed := make(chan error, 1)
	k := must(lease.Start(t.Context(),
		&fakeStore{Store: memstore.New(few, testCodec), on: fails(lease.ErrSchemaVersion)},
		testSecrets,
		lease.WithErrorHandler(func(err error) { failed <- err })))
	err := <-failed
	for _, err := range []error{err, k.Failure()} { // another one by now, perhaps
		if !errors.Is(err, lease.ErrSchemaVersion) {
			t.Errorf("the failure is %v, want %v", err, lease.ErrSchemaVersion)
		}
	}
	counted := func() float64 {
		return metrictest.Collect(t, globalReader())[requests("describe", "schema_version")]
	}
	if n := counted(); n < 1 {
		t.Errorf("%v requests are counted, want at least one", n)
	}
	k.Close()
	if n := counted(); n != 0 {
		t.Errorf("%v requests are counted after Close", n)
	}
}
