// Package driver is for authors of stores: it has the rules for granting, the
// checks that precede them, and the registry of stores by URL. Services need
// package lease and the package of their store.
//
// An operator creates a store once: it records the [lease.Description], with the
// identity of the store, and keeps it for ever. It then keeps one [Block] for each block
// of its [NodeRange] and answers a call of [lease.Store] in one atomic step: it
// compares the identity with the one that this client has used before, reads the
// block, applies the method of the same name and writes the result.
//
//	lease.Store, Admin  checks before it     the rule
//	Create              [CheckDescription]   -
//	Acquire             [CheckRequest]       [Block.Acquire], after [Shorten]
//	Renew               [CheckRequest]       [Block.Renew], after [Shorten]
//	Release             -                    [Block.Release]
//	Raise               [CheckRaise]         [RaiseTo], [Block.Raise]
//	AddSecret           [CheckFingerprint]   -
//
// Only Create creates anything. Every other call returns [lease.ErrNoStore] if there is no store, and
// [lease.ErrReplaced] if the store that this client has used, or a part of it, is gone or was replaced.
// A store that keeps a secret of its own is [Embedded]: a process creates it with [Ensure].
//
// Most servers can keep small objects and replace one only if nobody else has
// written it: for them package pages has everything but three methods. PostgreSQL
// keeps a row for each block, which it replaces under the same condition.
//
// A store that registers its scheme with [Register] can also be used from the command line: package
// cmd/traceflake/cli is the command, for a main function that imports the store.
//
// Package leasetest checks that a store follows these rules. [Memory] is the
// smallest store that does.
package driver
