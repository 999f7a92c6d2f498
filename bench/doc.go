// Command bench runs the packages beside it, each of which answers one question,
// and writes the results:
//
//	make bench                     # 8 minutes: RESULTS.md and plots/
//	make bench-check               # 3 minutes: the table of targets; fails if one is missed
//	make bench ARGS="-short"       # a minute: every measurement once, printed only
//	go run . -only rates,sharing   # some sections, printed only
//
//	rates    What does an ID cost at the rates of real services, on one CPU and on all?
//	spans    What does the generator add to a whole span?
//	sharing  How many calls write memory that two CPUs both write?
//	idle     What does a process pay while it makes few IDs or none?
//	builds   What do the assembly and the linkname gain?
//	rivals   What do other ways to make IDs cost, and what do they guarantee?
//	btree    What do different kinds of keys cost in a B-tree?
//	pruning  What does the order save if only a block's minimum and maximum are known?
//
// Compared code takes short alternating turns, so that other load on the machine affects all of it
// alike. See internal/turns.
package main
