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
//	I1 Within a history of the store, the granted seconds of a block never overlap: a grant
//	   starts at or after the end of the last one. The store keeps {granted_until, nonce,
//	   version} a block. Every write raises the version and leaves a fresh nonce. granted_until
//	   only grows.
//	I2 One grant feeds one generator in one process. It is never saved, copied or taken up again
//	   after a restart.
//	I3 Inside a generator the word of second, node and sequence only grows.
//	I4 A generator generates no ID outside its rectangle.
//	I5 Encryption under the key of one history is one-to-one, and each history has its own.
//
// A [History] is a period within which a store forgets nothing. Its key is derived from a secret of
// the fleet and the history's random ID, so a history may begin at any time, from any state of the
// store, without a new secret: see [HistoryCodec]. A Keeper begins one if the store is not where
// its history was begun, since it was restored, copied or failed over, and if the store has
// forgotten what it acknowledged. Leases of the history before are used to their ends, under its
// key. Nothing is given back: a lease ends by itself.
//
// None of these rules involves a clock. Clocks decide when an ID is generated, not whether it is
// unique: at worst, a suspended process or a stepped clock causes a refusal.
//
// The rules assume a store that is linearizable and durable within a history, and memory that is
// not cloned; docs/generator.md says how a copy of a process is detected. A store that is set back
// without a change of its place is noticed by the next holder whose lease it forgot: only IDs
// generated before may be equal. IDs of two histories, and random IDs that are generated without a
// lease, collide only as 64-bit random numbers would.
package lease
