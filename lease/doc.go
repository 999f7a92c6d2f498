// Package lease grants nodes to processes for a limited time, so that Randflake IDs are unique in
// a fleet despite wrong clocks, paused processes and unreachable stores.
//
// A [Store] divides the nodes into blocks and grants each block to one holder at a time. A [Keeper]
// holds one grant, renews it in the background and generates IDs with it, without I/O; [Start]
// starts one. Stores have their own packages: filestore for the processes of one host; pgstore,
// etcdstore, k8sstore and s3store for a fleet. Package driver is for authors of stores; its Open
// opens a store by URL. docs/metrics.md lists the metrics of a Keeper.
//
// # Why IDs are unique
//
// A lease gives exclusive use of a rectangle of nodes × seconds.
//
//	I1 For one block the granted seconds never overlap: a grant starts at or after the end of
//	   the last one. The store keeps {granted_until, nonce, version} a block. Every write raises
//	   the version and, except for Raise, leaves a fresh nonce. granted_until only grows, except
//	   that a holder that has sealed its generator gives unused seconds back.
//	I2 One grant feeds one generator in one process. It is never saved, copied or taken up again
//	   after a restart.
//	I3 Inside a generator the word of second, node and sequence only grows.
//	I4 A generator generates no ID outside its rectangle.
//	I5 Encryption under one secret is one-to-one.
//
// None of these rules involves a clock. Clocks decide when an ID is generated, not whether it is
// unique: at worst, a suspended process or a stepped clock causes a refusal.
//
// The rules assume a store that is linearizable and durable, and memory that is not cloned. They
// cover one secret: IDs under two secrets, and random IDs that are generated without a lease,
// collide only as 64-bit random numbers would.
//
// # Late messages
//
// Any request may be lost, late or repeated, and any response lost. That is harmless because
// every write has a nonce that is never drawn twice:
//
//   - A late Renew or Release compares the nonce and the version for which it was sent. It succeeds
//     only if nothing was written since, and then the Keeper still knows its nonce: it continues
//     only with a nonce that it proposed for this very grant, and with the stored end.
//   - A late Acquire may take a block for a nonce that is no longer in use. The block stays unused
//     until the grant's end. If the late Acquire grants the Keeper's own block again, the start has
//     changed, and the Keeper drops its grant.
//   - A grant that a repeated Acquire found may also have been found by a copy of the process. No
//     IDs are generated with it before the store has acknowledged a renewal.
//
// So after a call without a response the Keeper reads the block and acts on its content; if it
// cannot read the block, it uses its grant to the end.
//
// # Clones
//
// A copy of a running process holds the same grants, which violates I2. If Linux's vmclock reports
// the restore, no ID is generated with a grant that was requested before it, and the grant is not
// given back. For half a second the Keeper draws no nonce, because a kernel returns the same random
// bytes in every copy until it learns of the restore.
//
// Without such a report, only one of two copies can renew, because each renewal changes the nonce.
// The other copy drops the grant at the store's next response, reports [ErrCloned], and acquires
// another. Until then both generate the same IDs, usually for about half a TTL; docs/clones.md
// lists the longer cases. Two copies with the same nonces would never be detected. That requires
// equal random bytes from kernels that have not learned of the restore, a processor without a
// random number generator, and clocks equal to the nanosecond.
//
// Copies must use one store: a store that is copied with the machine, such as a lease directory on
// its disk, grants the same nodes to both; see package filestore.
//
// Clocks give a further hint: if the wall clock and the monotonic clock diverge by more than a
// second between two seconds of use, or between two checks a minute apart, the machine was
// suspended or cloned or its clock was stepped, and the grant is dropped.
package lease
