// Package bench measures IDs with Go benchmarks, whose sub-benchmarks benchstat compares:
//
//	go test -bench 'NewIDs/rate=flat' -cpu 1,2,4,8,16 -count 10 | tee ids.txt
//	benchstat -col /gen ids.txt
//
// On a machine with other load, let the benchmarks take turns: ./run starts each again and again
// for some milliseconds, and report compares the generators within each turn.
//
//	make bench            # everything, in about 15 minutes: RESULTS.md
//	make bench-check      # only what has a target, in about 6 minutes; fails if one is missed
//	bench/run cpus        # NewIDs and NewSpanID on 1, 2, 4, 8, 16 CPUs, to standard output
//
// NewIDs and NewSpanID measure the cost of an ID at the rates of real services, Span that of a
// root span, Rival that of other kinds of IDs. The folder clickhouse has its own program.
package bench
