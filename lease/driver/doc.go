// Package driver is for authors of stores: it has the rules for granting, the
// checks that precede them, and the registry of stores by URL. Services need
// package lease and the package of their store.
//
// A store keeps one [Block] for each block of nodes of its [NodeRange] and
// answers a call of [lease.Store] in one atomic step: it reads the block,
// applies the method of the same name and writes the result.
//
//	lease.Store  checks before it  the rule
//	Acquire      [CheckRequest]    [Block.Acquire]
//	Renew        [CheckRequest]    [Block.Renew]
//	Release      -                 [Block.Release]
//	Raise        [CheckRaise]      [Block.Raise]
//
// Most servers can keep small objects and replace one only if nobody else has
// written it: for them package pages has everything but three methods. PostgreSQL
// keeps a row for each block, which it replaces under the same condition.
//
// Package leasetest checks that a store follows these rules. [Memory] is the
// smallest store that does.
package driver
