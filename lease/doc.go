// Package lease grants nodes to processes for a limited time, so that Randflake IDs are unique in
// a fleet despite wrong clocks, paused processes and unreachable stores.
//
// A [Store] divides the nodes into blocks and grants each block to one holder at a time. A [Keeper]
// holds one grant, renews it in the background and generates IDs with it, without I/O; [Start]
// starts one. A Keeper's use of one grant, from its acquisition to its end, is a term. Stores have
// their own packages: filestore for the processes of one host; pgstore, etcdstore, k8sstore and
// s3store for a fleet. Package stores opens a store by URL. Package driver is for authors of
// stores.
//
// IDs are unique because a lease gives exclusive use of a rectangle of nodes × seconds:
//
//	I1 For one block the granted seconds never overlap: a grant starts at or after the end of
//	   the last one. The store keeps {granted_until, nonce, version} a block. Every write raises
//	   the version and leaves a fresh nonce. granted_until only grows, except that a holder that
//	   has sealed its generator gives unused seconds back.
//	I2 One grant feeds one generator in one process. It is never saved, copied or taken up again
//	   after a restart.
//	I3 Inside a generator the word of second, node and sequence only grows.
//	I4 A generator generates no ID outside its rectangle.
//	I5 Encryption under one secret is one-to-one.
//
// A store that was restored from a backup has forgotten grants. It begins a new history, with
// another ID and another secret; every request compares the ID. See docs/leases.md.
//
// None of these rules involves a clock. Clocks decide when an ID is generated, not whether it is
// unique: at worst, a suspended process or a stepped clock causes a refusal.
//
// The rules assume a store that is linearizable and durable, and memory that is not cloned;
// docs/clones.md says how a copy of a process is detected. They cover one secret: IDs under two
// secrets, and random IDs that are generated without a lease, collide only as 64-bit random numbers
// would.
package lease
