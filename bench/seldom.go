package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A tight loop never shows what an ID costs now and then: below 64 IDs a
// millisecond idgen runs no timer each millisecond, and reads the clock itself
// for what needs the time.

// burst is how many calls are made at the beginning of a millisecond.
const burst = 32

// measureSeldom measures bursts, each in a millisecond of its own. Its
// generators are used for nothing else, so that no timer runs.
func measureSeldom(ctx context.Context, s settings) (m samples, err error) {
	g, err := newGenerators(ctx)
	if err != nil {
		return m, err
	}
	subjects := []subject{
		newIDs("NewIDs", "default", 1, g.sdk), newIDs("NewIDs", "traceflake", 1, g.private),
		newSpanID("NewSpanID", "default", 1, g.sdk), newSpanID("NewSpanID", "traceflake", 1, g.private),
	}
	subjects = append(subjects, slices.DeleteFunc(g.spans(), func(s subject) bool { return !strings.HasSuffix(s.name, "Never") || s.gen == "again" })...)
	m.of = make(map[string][]sample)
	for range s.rounds {
		for _, subject := range subjects {
			m.add(subject.key(), bursts(subject, s.turn))
		}
	}
	return m, errors.Join(err, g.close(ctx))
}

// bursts are a turn of them; only they are timed.
func bursts(s subject, turn time.Duration) sample {
	b := sample{per: 1}
	for end := time.Now().Add(turn); b.calls == 0 || time.Now().Before(end); b.calls += burst {
		next := time.Now().Truncate(time.Millisecond).Add(time.Millisecond)
		for time.Now().Before(next) {
			// spin: who sleeps finds its caches cold
		}
		start := time.Now()
		s.calls(burst)
		b.wall += time.Since(start)
	}
	return b
}

func seldomReport(m samples) string {
	rows := [][]string{{"", "traceflake", "the SDK's default", "ratio", "more"}}
	for _, c := range [][2]string{
		{"NewIDs", "NewIDs, now and then"},
		{"NewSpanID", "NewSpanID, now and then"},
		{"RootSpanNever", "Start+End of a root span, never sampled"},
		{"ChildSpanNever", "Start+End of a child span, never sampled"},
	} {
		of, to := key(c[0], "traceflake", 1), key(c[0], "default", 1)
		mine, theirs := m.median(of, sample.wallNs), m.median(to, sample.wallNs)
		rows = append(rows, []string{c[1], short(mine) + " ns", short(theirs) + " ns", fmt.Sprintf("%.2f", m.ratio(of, to, sample.wallNs)), short(mine-theirs) + " ns"})
	}
	return fmt.Sprintf(`%d calls at the beginning of each millisecond, one goroutine, with a look at the clock as all that is done between: %d 000
a second. So it is for every rate below 64 IDs a millisecond (64 000 a second): no timer runs each millisecond, and a
trace ID's time is read from the clock, where at higher rates it is what the timer wrote. Medians of wall time, for
information: they have no target.

%s`, burst, burst, markdown(rows))
}
