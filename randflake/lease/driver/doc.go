// Package driver is for authors of stores: the rule of granting, what is
// checked before it, and how a store is registered for URLs. Services need
// package lease and the package of their store.
//
// A store keeps one [Block] for each block of nodes of its [NodeRange] and
// answers a call of [lease.Store] in one atomic step: it reads the block,
// applies the method of the same name and writes the result. A store that has
// to express the rule in another language, SQL for instance, applies the
// method to what it read as well and compares.
//
//	lease.Store  checks before it                    the rule
//	Acquire      [CheckRequest]                      [Block.Acquire]
//	Renew        [CheckRenewal] if it knows the time [Block.Renew]
//	Release      -                                   [Block.Release]
//	Raise        [CheckRaise]                        [Block.Raise]
//
// Package leasetest holds a store to this rule. [Memory] is the smallest store
// that follows it.
package driver
