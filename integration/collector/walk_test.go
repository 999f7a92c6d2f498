package collector

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestAdoptWalk: two operators swap and undo at the same time, and are killed at any moment, while
// three exporters store spans. Each span is stored once. TRACEFLAKE_SWAPS is how many exchanges
// there are at least.
func TestAdoptWalk(t *testing.T) {
	want := 8
	if n, err := strconv.Atoi(os.Getenv("TRACEFLAKE_SWAPS")); err == nil {
		want = n
	}
	path := child.Build(t, child.Traceflake)
	e := database(t)
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", e.DSN())
	collector(t, examples+"overlay.yaml") // creates the tables
	command := func(operation string) *exec.Cmd {
		args := []string{"clickhouse", "adopt", operation}
		if operation == "prepare" {
			args = append(args, "--skip-access") // this engine shows no policies
		}
		return exec.Command(path, args...)
	}
	if out, err := command("prepare").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	generator := idgen.New()
	var next atomic.Uint64
	var swapped, killed atomic.Int64
	var all sync.WaitGroup
	end := make(chan struct{})
	running := func() bool {
		select {
		case <-end:
			return false
		default:
			return !t.Failed()
		}
	}
	for range 3 {
		exporter := collector(t, examples+"overlay.yaml")
		all.Go(func() {
			for running() {
				if err := exporter.ConsumeTraces(t.Context(),
					batch(generator, next.Add(20)-20)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for operator := range 2 {
		random := rand.New(rand.NewPCG(uint64(operator), 7))
		all.Go(func() {
			for running() {
				cmd := command([]string{"swap", "undo"}[random.IntN(2)])
				var out strings.Builder
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				kill := time.AfterFunc(time.Duration(random.IntN(2000))*time.Millisecond, func() {
					if cmd.Process.Kill() == nil {
						killed.Add(1)
					}
				})
				_ = cmd.Wait() // it may have been killed, or met the other operator
				kill.Stop()
				swapped.Add(int64(strings.Count(out.String(), " has the name ")))
			}
		})
	}
	for swapped.Load() < int64(want) && !t.Failed() {
		time.Sleep(10 * time.Millisecond)
	}
	close(end)
	all.Wait()
	if out, err := command("swap").CombinedOutput(); err != nil { // one that nobody interrupts
		t.Fatalf("%v: %s", err, out)
	}
	const both = "(SELECT SpanId, TraceId FROM otel_traces UNION ALL SELECT SpanId, TraceId FROM " +
		"otel_traces_other)"
	counts := e.Rows(t, "SELECT toString(count()), toString(uniqExact(SpanId)), "+
		"toString(uniqExact(TraceId)) FROM "+both)[0]
	n := next.Load()
	if spans := fmt.Sprint(n); counts[0] != spans || counts[1] != spans {
		t.Errorf("%s spans of %s are stored, %s of them different", counts[0], spans, counts[1])
	}
	t.Logf("%d exchanges, %d kills, %d spans", swapped.Load(), killed.Load(), n)
}
