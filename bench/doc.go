// Command bench measures what an ID costs, against its rivals and against
// drawing random numbers, and writes what it measured:
//
//	make bench                   # minutes; writes RESULTS.md, plots/ and results.txt, which git ignores
//	make bench-check             # the table of ratios with short runs; fails when one is missed by more than 25 %
//	go run . -only ids,lines     # some sections, to standard output; run in this folder
//	go test -bench . -count 10   # the same subjects under Go's own benchmark driver
//
// Whatever is compared is measured in turns, some milliseconds each, so that
// what else happens on the machine meets both sides. A ratio is the median of
// the ratios of neighbouring turns.
package main
