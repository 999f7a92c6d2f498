// Command bench runs the packages beside it, each of which answers one question,
// and writes what they measured:
//
//	make bench                     # 8 minutes: RESULTS.md and plots/
//	make bench-check               # 3 minutes: the table of targets; fails if one is missed
//	make bench ARGS="-short"       # a minute: every measurement once, printed and not written
//	go run . -only rates,sharing   # some sections, printed
//
//	rates    What does an ID cost at the rates of real services, on one CPU and on all?
//	spans    What does the generator add to a whole span?
//	sharing  Of the calls that two CPUs make, how many write memory that both write?
//	idle     What does a process pay while it makes few IDs or none?
//	builds   What do the assembly and the linkname buy?
//	rivals   What do other ways to make IDs cost, and what do they promise?
//	btree    What do keys of different kinds cost a B-tree?
//	pruning  What is the order worth where only a block's minimum and maximum are known?
//
// What is compared takes short turns, one beside the other, so that whatever else
// happens on the machine meets both. See internal/turns.
package main
